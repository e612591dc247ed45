/* event_file.h - scalars and texts in the files that TensorBoard reads.
 *
 *     FILE *file = fopen("runs/lenet/events.out.tfevents.0123456789.nn", "wb");
 *     event_file_begin(file, time);
 *     event_file_scalars(file, time, step, names, values, count);   // names[i] = "loss/train", ...
 *
 * Such a file is a row of records (TFRecord, tensorflow/core/lib/io/record_writer.h), each of which is one Event
 * (tensorflow/core/util/event.proto) as a protocol buffer. All numbers are little-endian:
 *
 *     uint64 length; uint32 masked CRC-32C of these 8 bytes; Event; uint32 masked CRC-32C of the event
 *
 *     Event     1: double wall_time; 2: int64 step; 3: string file_version; 5: Summary; 7: SessionLog
 *     Summary   1: repeated Value { 1: string tag; 2: float simple_value; 8: TensorProto; 9: SummaryMetadata }
 *
 * In a protocol buffer a field is a varint (8 * number + type) and its value; type 0 is a varint, 1 has 8 bytes, 5 has
 * 4, 2 has a length and so many bytes: a text or another message. A record that a kill has cut short is the last one,
 * and readers leave it out.
 */
#ifndef COMMON_EVENT_FILE_H
#define COMMON_EVENT_FILE_H

#include "common/error.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>

/* TensorBoard takes every file with "tfevents" in its name, the later ones by name after the earlier ones. */
#define EVENT_FILE_PREFIX "events.out.tfevents."
#define EVENT_FILE_SUFFIX ".nn" /* so that no file of another program is taken for ours */

/* ------------------------------------------------------------------------------------------------- protocol buffers */

typedef struct ProtoMessage {
  unsigned char *bytes; /* for free() */
  size_t size, room;
} ProtoMessage;

static inline void proto_add(ProtoMessage *m, const void *bytes, size_t size) {
  if (m->size + size > m->room) {
    m->room = 2 * (m->size + size) + 64;
    unsigned char *grown = (unsigned char *)xmalloc(m->room);
    if (m->size > 0) memcpy(grown, m->bytes, m->size);
    free(m->bytes);
    m->bytes = grown;
  }
  memcpy(m->bytes + m->size, bytes, size);
  m->size += size;
}

/* Seven bits per byte, the lowest first; the eighth says that more follow. */
static inline void proto_add_varint(ProtoMessage *m, uint64_t value) {
  unsigned char bytes[10];
  size_t size = 0;
  for (; value >= 128; value >>= 7) bytes[size++] = (unsigned char)(value | 128);
  bytes[size++] = (unsigned char)value;
  proto_add(m, bytes, size);
}

static inline void proto_add_int(ProtoMessage *m, int field, int64_t value) {
  proto_add_varint(m, (uint64_t)field << 3);
  proto_add_varint(m, (uint64_t)value);
}

static inline void proto_add_double(ProtoMessage *m, int field, double value) {
  proto_add_varint(m, (uint64_t)field << 3 | 1);
  proto_add(m, &value, sizeof value);
}

static inline void proto_add_float(ProtoMessage *m, int field, float value) {
  proto_add_varint(m, (uint64_t)field << 3 | 5);
  proto_add(m, &value, sizeof value);
}

static inline void proto_add_bytes(ProtoMessage *m, int field, const void *bytes, size_t size) {
  proto_add_varint(m, (uint64_t)field << 3 | 2);
  proto_add_varint(m, size);
  if (size > 0) proto_add(m, bytes, size);
}

static inline void proto_add_string(ProtoMessage *m, int field, const char *text) {
  proto_add_bytes(m, field, text, strlen(text));
}

/* `inner` becomes a field of `m`, and is freed. */
static inline void proto_add_message(ProtoMessage *m, int field, ProtoMessage *inner) {
  proto_add_bytes(m, field, inner->bytes, inner->size);
  free(inner->bytes);
  memset(inner, 0, sizeof *inner);
}

/* ---------------------------------------------------------------------------------------------------------- records */

/* CRC-32C (Castagnoli), as in RFC 3720, appendix B.4: reflected, polynomial 0x1EDC6F41. */
static inline uint32_t event_file_crc(const void *bytes, size_t size) {
  const unsigned char *at = (const unsigned char *)bytes;
  uint32_t crc = 0xFFFFFFFFu;
  for (size_t i = 0; i < size; i++) {
    crc ^= at[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
  }
  return ~crc;
}

/* TFRecord masks a checksum, so that a record of records does not look like one of its own. */
static inline uint32_t event_file_masked_crc(const void *bytes, size_t size) {
  const uint32_t crc = event_file_crc(bytes, size);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* An event as a record, and frees it. Errors stay in the stream, for fflush(). */
static inline void event_file_write(FILE *file, ProtoMessage *event) {
  const uint64_t length = event->size;
  const uint32_t of_length = event_file_masked_crc(&length, sizeof length);
  const uint32_t of_event = event_file_masked_crc(event->bytes, event->size);
  fwrite(&length, sizeof length, 1, file);
  fwrite(&of_length, sizeof of_length, 1, file);
  fwrite(event->bytes, 1, event->size, file);
  fwrite(&of_event, sizeof of_event, 1, file);
  free(event->bytes);
  memset(event, 0, sizeof *event);
}

/* ----------------------------------------------------------------------------------------------------------- events */

/* `time`: seconds since 1970. */
static inline ProtoMessage event_file_event(double time, long step) {
  ProtoMessage event;
  memset(&event, 0, sizeof event);
  proto_add_double(&event, 1, time);
  if (step != 0) proto_add_int(&event, 2, step);
  return event;
}

/* What a file begins with: its version, and the start of a session at step 0, after which TensorBoard forgets what it
 * has read of other files of the folder. */
static inline void event_file_begin(FILE *file, double time) {
  ProtoMessage version = event_file_event(time, 0), start = event_file_event(time, 0), session;
  memset(&session, 0, sizeof session);
  proto_add_string(&version, 3, "brain.Event:2");
  event_file_write(file, &version);
  proto_add_int(&session, 1, 1); /* SessionLog.status = START */
  proto_add_message(&start, 7, &session);
  event_file_write(file, &start);
}

/* The values that are finite, in one event. */
static inline void event_file_scalars(FILE *file, double time, long step, const char *const *names,
                                      const double *values, int count) {
  ProtoMessage event = event_file_event(time, step), summary;
  memset(&summary, 0, sizeof summary);
  for (int i = 0; i < count; i++) {
    ProtoMessage value;
    if (!isfinite(values[i])) continue;
    memset(&value, 0, sizeof value);
    proto_add_string(&value, 1, names[i]);
    proto_add_float(&value, 2, (float)values[i]);
    proto_add_message(&summary, 1, &value);
  }
  proto_add_message(&event, 5, &summary);
  event_file_write(file, &event);
}

/* Markdown for TensorBoard's "text" plugin: a tensor of one string. */
static inline void event_file_text(FILE *file, double time, long step, const char *name, const char *text) {
  ProtoMessage event = event_file_event(time, step), summary, value, tensor, shape, dim, metadata, plugin;
  ProtoMessage *const all[] = {&summary, &value, &tensor, &shape, &dim, &metadata, &plugin};
  for (int i = 0; i < 7; i++) memset(all[i], 0, sizeof *all[i]);
  proto_add_int(&dim, 1, 1);          /* TensorShapeProto.Dim.size */
  proto_add_message(&shape, 2, &dim); /* TensorShapeProto.dim */
  proto_add_int(&tensor, 1, 7);       /* TensorProto.dtype = DT_STRING */
  proto_add_message(&tensor, 2, &shape);
  proto_add_string(&tensor, 8, text);   /* TensorProto.string_val */
  proto_add_string(&plugin, 1, "text"); /* SummaryMetadata.PluginData.plugin_name */
  proto_add_message(&metadata, 1, &plugin);
  proto_add_string(&value, 1, name);
  proto_add_message(&value, 8, &tensor);
  proto_add_message(&value, 9, &metadata);
  proto_add_message(&summary, 1, &value);
  proto_add_message(&event, 5, &summary);
  event_file_write(file, &event);
}

/* ------------------------------------------------------------------------------------------------------------ names */

static inline int event_file_is(const char *name) {
  const size_t length = strlen(name), prefix = strlen(EVENT_FILE_PREFIX), suffix = strlen(EVENT_FILE_SUFFIX);
  return length > prefix + suffix && strncmp(name, EVENT_FILE_PREFIX, prefix) == 0 &&
         strcmp(name + length - suffix, EVENT_FILE_SUFFIX) == 0;
}

typedef struct EventFileName {
  char text[NAME_MAX + 1];
} EventFileName;

/* Replaces a name by that of the folder's next event file, in the order of names; "" comes before all. 0: there is no
 * further one. */
static inline int event_file_next(const char *folder, EventFileName *name) {
  EventFileName next = {""};
  DIR *directory = opendir(folder);
  if (directory == NULL) return 0;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
    if (event_file_is(entry->d_name) && strcmp(entry->d_name, name->text) > 0 &&
        (next.text[0] == '\0' || strcmp(entry->d_name, next.text) < 0))
      snprintf(next.text, sizeof next.text, "%s", entry->d_name);
  closedir(directory);
  *name = next;
  return next.text[0] != '\0';
}

/* A name for a new one: that of this second, or, where the folder has one of it or of a later one, the second after
 * that. */
static inline EventFileName event_file_name(const char *folder, double time) {
  EventFileName name = {""};
  long second = (long)time;
  while (event_file_next(folder, &name)) {
    const long taken = atol(name.text + strlen(EVENT_FILE_PREFIX));
    if (taken >= second) second = taken + 1;
  }
  snprintf(name.text, sizeof name.text, EVENT_FILE_PREFIX "%010ld" EVENT_FILE_SUFFIX, second);
  return name;
}

#endif /* COMMON_EVENT_FILE_H */
