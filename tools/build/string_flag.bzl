"""A command line flag with a list of allowed values: --//tools/build:backend=cuda."""

FlagInfo = provider(doc = "The value of a string_flag.", fields = {"value": "a string"})

def _string_flag_impl(ctx):
    value, allowed = ctx.build_setting_value, ctx.attr.values
    if allowed and value not in allowed:
        fail("%s: '%s' is none of %s" % (ctx.label, value, ", ".join(allowed)))
    return [FlagInfo(value = value)]

string_flag = rule(
    implementation = _string_flag_impl,
    attrs = {"values": attr.string_list(doc = "The allowed values; none means any.")},
    build_setting = config.string(flag = True),
)
