/* atomic_file.h - write a file so that a kill, a power cut or a full disk leaves either the old file or the new one.
 *
 *     AtomicFile f;
 *     if (atomic_file_open(&f, "runs/last.safetensors", &err) != 0) return -1;
 *     fwrite(data, 1, size, f.stream);          // fprintf, fputc... : errors are kept until the commit
 *     return atomic_file_commit(&f, &err);      // or atomic_file_abandon(&f)
 *
 * The bytes go to `PATH.tmp` in the same directory, are synced to the disk, and only then renamed to PATH, which the
 * kernel does in one step. A killed writer leaves its PATH.tmp behind and the next writer takes it over; a lock on it
 * keeps two programs from writing the same file at once.
 */
#ifndef COMMON_ATOMIC_FILE_H
#define COMMON_ATOMIC_FILE_H

#include "common/error.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct AtomicFile {
  FILE *stream;
  char path[PATH_MAX];
  char temporary[PATH_MAX + 8];
} AtomicFile;

static inline void atomic_file_abandon(AtomicFile *f) {
  if (f->stream == NULL) return;
  unlink(f->temporary); /* while the lock, which ends with the stream, is ours */
  fclose(f->stream);
  f->stream = NULL;
}

/* Whether `name` still is the file open as fd: another writer may have renamed or removed it before we got the lock. */
static inline int atomic_file_is(const char *name, int fd) {
  struct stat named, ours;
  return fstat(fd, &ours) == 0 && lstat(name, &named) == 0 && ours.st_dev == named.st_dev &&
         ours.st_ino == named.st_ino;
}

static inline int atomic_file_open(AtomicFile *f, const char *path, Error *err) {
  memset(f, 0, sizeof *f);
  if (path[0] == '\0') return error_set(err, "cannot write a file without a name");
  struct stat old;
  int exists = stat(path, &old) == 0;
  if (exists && !S_ISREG(old.st_mode))
    return error_set(err, "cannot write %s: it is a %s; give the name of a file", path,
                     S_ISDIR(old.st_mode) ? "directory" : "device or pipe");
  if (exists && access(path, W_OK) != 0)
    return error_set(err, "cannot overwrite %s: %s; choose another name or chmod u+w it", path, strerror(errno));
  /* Through a symbolic link the file it points to is replaced, not the link. */
  if (exists ? realpath(path, f->path) == NULL : (size_t)snprintf(f->path, PATH_MAX, "%s", path) >= PATH_MAX)
    return error_set(err, "cannot write %s: %s", path, exists ? strerror(errno) : "the name is too long");
  snprintf(f->temporary, sizeof f->temporary, "%s.tmp", f->path);

  int fd = -1;
  do {
    if (fd >= 0) close(fd);
    fd = open(f->temporary, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
      return error_set(err, "cannot create %s: %s; check that its directory exists and may be written", f->temporary,
                       strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      close(fd);
      return error_set(err, "cannot write %s: another program is writing it now; wait for it or choose another name",
                       path);
    }
  } while (!atomic_file_is(f->temporary, fd));

  if (ftruncate(fd, 0) != 0 || (exists && fchmod(fd, old.st_mode & 07777) != 0) ||
      (f->stream = fdopen(fd, "wb")) == NULL) {
    error_set(err, "cannot write %s: %s", path, strerror(errno));
    unlink(f->temporary);
    close(fd);
    return -1;
  }
  return 0;
}

/* A new name is on the disk only when its directory is. Some file systems cannot sync one and say EINVAL. */
static inline int atomic_file_sync_directory(const char *path) {
  char directory[PATH_MAX] = ".";
  const char *slash = strrchr(path, '/');
  if (slash != NULL) snprintf(directory, sizeof directory, "%.*s", slash == path ? 1 : (int)(slash - path), path);
  int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  int status = fsync(fd) == 0 || errno == EINVAL ? 0 : -1;
  int reason = errno;
  close(fd);
  errno = reason;
  return status;
}

static inline int atomic_file_commit(AtomicFile *f, Error *err) {
  int fd = fileno(f->stream), reason = 0;
  if (fflush(f->stream) != 0 || fsync(fd) != 0) reason = errno;
  if (ferror(f->stream)) /* some write failed; the stream forgot why, and trying once more tells */
    reason = write(fd, "", 1) < 0 ? errno : EIO;
  if (reason == 0 && rename(f->temporary, f->path) != 0) reason = errno;
  if (reason != 0) {
    atomic_file_abandon(f);
    return error_set(err, "cannot write %s: %s; what was there before is untouched; make room, or choose another place",
                     f->path, strerror(reason));
  }
  fclose(f->stream); /* all is on the disk: this only drops the lock */
  f->stream = NULL;
  if (atomic_file_sync_directory(f->path) != 0)
    return error_set(err, "%s is written, but its directory could not be synced to the disk: %s", f->path,
                     strerror(errno));
  return 0;
}

#endif /* COMMON_ATOMIC_FILE_H */
