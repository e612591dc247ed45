/* scan.h - looks over the bytes of a protobuf message before protobuf-c unpacks them.
 *
 * protobuf-c checks lengths, but it follows messages inside messages as deep as a file wants them, which ends in a
 * stack overflow, it cuts a text at its first zero byte, it joins a graph that is given in many parts in time that
 * grows with their square, and where a file is wrong it does not say. This pass bounds the depth, wants such a message
 * in one part, and names the byte, the message and the field. The format, from protobuf's encoding guide: fields one
 * after the other, each a varint (number * 8 + coding), then a varint (coding 0), 8 bytes (1), a length and that
 * many bytes (2), or 4 bytes (5).
 */
#ifndef COMMON_ONNX_SCAN_H
#define COMMON_ONNX_SCAN_H

#include "common/error.h"

#include <protobuf-c/protobuf-c.h>

enum { ONNX_MAX_DEPTH = 64 }; /* of messages in messages; a body of a body of a loop has 3 levels for each */

typedef struct OnnxScan {
  const char *path;           /* for the messages */
  const unsigned char *begin; /* of the file */
} OnnxScan;

typedef struct OnnxBytes { /* what is left of a message */
  const unsigned char *at, *end;
} OnnxBytes;

/* Seven bits a byte, the lowest first; the last byte has its highest bit clear. */
static inline int onnx_scan_varint(const OnnxScan *scan, OnnxBytes *in, const char *what, uint64_t *value, Error *err) {
  const size_t offset = (size_t)(in->at - scan->begin);
  *value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (in->at == in->end)
      return error_set(err, "%s is cut short or damaged: a number of its %s at byte %zu has no end; fetch it again",
                       scan->path, what, offset);
    const unsigned char byte = *in->at++;
    if (shift < 64) *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return 0;
  }
  return error_set(err, "%s is damaged: a number of its %s at byte %zu is longer than 10 bytes; fetch it again",
                   scan->path, what, offset);
}

static inline int onnx_scan_skip(const OnnxScan *scan, OnnxBytes *in, uint64_t size, const char *what, Error *err) {
  if (size > (uint64_t)(in->end - in->at))
    return error_set(
        err, "%s is cut short or damaged: its %s at byte %zu declares %llu bytes, %zu are left; fetch it again",
        scan->path, what, (size_t)(in->at - scan->begin), (unsigned long long)size, (size_t)(in->end - in->at));
  in->at += size;
  return 0;
}

/* The coding of a field that is not packed. */
static inline unsigned onnx_scan_coding(const ProtobufCFieldDescriptor *field) {
  switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
      return 5;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
      return 1;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
      return 2;
    default:
      return 0;
  }
}

/* Numbers packed into one field of bytes: whole ones only. */
static inline int onnx_scan_packed(const OnnxScan *scan, OnnxBytes in, unsigned coding, const char *what, Error *err) {
  const size_t size = (size_t)(in.end - in.at), element = coding == 5 ? 4 : 8;
  if (coding != 0 && size % element != 0)
    return error_set(err, "%s is damaged: its %s at byte %zu holds %zu bytes, no multiple of %zu", scan->path, what,
                     (size_t)(in.at - scan->begin), size, element);
  uint64_t value;
  while (coding == 0 && in.at < in.end)
    if (onnx_scan_varint(scan, &in, what, &value, err) != 0) return -1;
  return 0;
}

/* A message of this kind and all in it. */
static inline int onnx_scan_message(const OnnxScan *scan, const ProtobufCMessageDescriptor *message, OnnxBytes in,
                                    int depth, Error *err) {
  char what[160];
  uint64_t seen = 0; /* a bit for each field */
  if (depth > ONNX_MAX_DEPTH)
    return error_set(err, "%s has messages nested deeper than %d levels; it is damaged or hostile", scan->path,
                     ONNX_MAX_DEPTH);
  while (in.at < in.end) {
    const size_t offset = (size_t)(in.at - scan->begin);
    uint64_t key, value;
    if (onnx_scan_varint(scan, &in, message->short_name, &key, err) != 0) return -1;
    const unsigned coding = key & 7;
    const ProtobufCFieldDescriptor *field =
        key >> 3 > INT32_MAX ? NULL : protobuf_c_message_descriptor_get_field(message, (unsigned)(key >> 3));
    snprintf(what, sizeof what, "%s.%s", message->short_name, field == NULL ? "(unknown field)" : field->name);
    if (key >> 3 == 0 || key >> 3 > 0x1fffffff || (coding != 0 && coding != 1 && coding != 2 && coding != 5))
      return error_set(err, "%s is no ONNX file, or damaged: byte %zu begins no field of a %s", scan->path, offset,
                       message->short_name);
    const unsigned expected = field == NULL ? coding : onnx_scan_coding(field);
    const int packed = coding == 2 && expected != 2 && field != NULL && field->label == PROTOBUF_C_LABEL_REPEATED;
    if (coding != expected && !packed)
      return error_set(err, "%s is no ONNX file, or damaged: its %s at byte %zu has coding %u, expected %u", scan->path,
                       what, offset, coding, expected);
    if (coding == 0) {
      if (onnx_scan_varint(scan, &in, what, &value, err) != 0) return -1;
      continue;
    }
    if (coding != 2) {
      if (onnx_scan_skip(scan, &in, coding == 5 ? 4 : 8, what, err) != 0) return -1;
      continue;
    }
    if (onnx_scan_varint(scan, &in, what, &value, err) != 0) return -1;
    OnnxBytes part = {in.at, in.at};
    if (onnx_scan_skip(scan, &in, value, what, err) != 0) return -1;
    part.end = in.at;
    if (packed && onnx_scan_packed(scan, part, expected, what, err) != 0) return -1;
    if (field == NULL || packed) continue;
    if (field->type == PROTOBUF_C_TYPE_STRING && memchr(part.at, 0, (size_t)value) != NULL)
      return error_set(err, "%s is damaged: its %s at byte %zu is a text with a zero byte in it", scan->path, what,
                       offset);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE && field->label != PROTOBUF_C_LABEL_REPEATED) {
      const uint64_t bit = UINT64_C(1) << ((field - message->fields) & 63);
      if (seen & bit)
        return error_set(err, "%s is damaged: its %s is there a second time at byte %zu; one was expected", scan->path,
                         what, offset);
      seen |= bit;
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE &&
        onnx_scan_message(scan, (const ProtobufCMessageDescriptor *)field->descriptor, part, depth + 1, err) != 0)
      return -1;
  }
  return 0;
}

#endif /* COMMON_ONNX_SCAN_H */
