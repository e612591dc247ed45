/* hooks.c - the table by which the runtime reaches the inspector: what it tells is declared in runtime/hooks.h. */
#include "inspect.h"

const SimtHooks simt_hooks = {
    .submitted = simt_inspect_submitted,
    .launch_begin = simt_inspect_launch_begin,
    .launch_end = simt_inspect_launch_end,

    .block_begin = simt_inspect_block_begin,
    .block_end = simt_inspect_block_end,
    .inspecting = simt_inspect_inspecting,
    .next = simt_inspect_next,
    .pick = simt_inspect_pick,
    .prefer = simt_inspect_prefer,
    .spins = simt_inspect_spins,
    .stack = simt_inspect_stack,
    .give_turn = simt_inspect_give_turn,
    .take_turn = simt_inspect_take_turn,
    .active_mask = simt_inspect_active_mask,

    .sync_point = simt_inspect_sync_point,
    .passed = simt_inspect_passed,
    .block_barrier = simt_inspect_block_barrier,
    .warp_meeting = simt_inspect_warp_meeting,
    .grid_arrive = simt_inspect_grid_arrive,
    .grid_barrier = simt_inspect_grid_barrier,
    .pause = simt_inspect_pause,
    .resume = simt_inspect_continue,

    .allocated = simt_inspect_allocated,
    .freed = simt_inspect_freed,
    .host_wrote = simt_inspect_host_wrote,
    .held = simt_inspect_held,

    .bulk_began = simt_inspect_bulk_began,
    .bulk_arrived = simt_inspect_bulk_arrived,
    .bulk_reads = simt_inspect_bulk_reads,
    .async_reads = simt_inspect_async_reads,
    .async_fence = simt_inspect_async_fence,
    .counted = simt_inspect_counted,

    .saw_outside = simt_inspect_saw_outside,
    .told = simt_inspect_told,
};
