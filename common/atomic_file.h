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

/* Stays where it is between open and commit: the stream points back to it. */
typedef struct AtomicFile {
  FILE *stream;
  int fd;
  int error; /* errno of the first write that failed */
  char path[PATH_MAX];
  char temporary[PATH_MAX + 8];
} AtomicFile;

/* What the stream calls to write. Keeping the first errno here lets commit name the reason ("No space left"). */
static inline ssize_t atomic_file_sink(void *cookie, const char *bytes, size_t size) {
  AtomicFile *f = (AtomicFile *)cookie;
  for (size_t done = 0; done < size && f->error == 0;) {
    ssize_t n = write(f->fd, bytes + done, size - done);
    if (n > 0)
      done += (size_t)n;
    else if (n == 0 || errno != EINTR)
      f->error = n == 0 ? EIO : errno;
  }
  return f->error == 0 ? (ssize_t)size : 0;
}

static inline void atomic_file_abandon(AtomicFile *f) {
  if (f->fd < 0) return;
  if (f->stream != NULL) fclose(f->stream);
  unlink(f->temporary);
  close(f->fd);
  f->stream = NULL;
  f->fd = -1;
}

/* Whether PATH.tmp still names the file we hold: another writer may have renamed or removed it before we got the lock. */
static inline int atomic_file_is_ours(const AtomicFile *f) {
  struct stat ours, named;
  return fstat(f->fd, &ours) == 0 && lstat(f->temporary, &named) == 0 && ours.st_dev == named.st_dev &&
         ours.st_ino == named.st_ino;
}

static inline int atomic_file_open(AtomicFile *f, const char *path, Error *err) {
  memset(f, 0, sizeof *f);
  f->fd = -1;
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

  do {
    if (f->fd >= 0) close(f->fd);
    f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (f->fd < 0)
      return error_set(err, "cannot create %s: %s; check that its directory exists and may be written", f->temporary,
                       strerror(errno));
    if (flock(f->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      close(f->fd);
      f->fd = -1;
      return error_set(err, "cannot write %s: another program is writing it now; wait for it or choose another name",
                       path);
    }
  } while (!atomic_file_is_ours(f));

  cookie_io_functions_t functions = {NULL, atomic_file_sink, NULL, NULL};
  f->stream = fopencookie(f, "w", functions);
  if (f->stream == NULL || ftruncate(f->fd, 0) != 0 || (exists && fchmod(f->fd, old.st_mode & 07777) != 0)) {
    error_set(err, "cannot write %s: %s", path, strerror(errno));
    atomic_file_abandon(f);
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
  int closed = fclose(f->stream);
  f->stream = NULL;
  if (f->error == 0 && (closed != 0 || fsync(f->fd) != 0 || rename(f->temporary, f->path) != 0)) f->error = errno;
  if (f->error != 0) {
    error_set(err, "cannot write %s: %s; what was there before is untouched; make room, or choose another place",
              f->path, strerror(f->error));
    atomic_file_abandon(f);
    return -1;
  }
  close(f->fd); /* after the sync there is nothing left that closing could fail to write; it drops the lock */
  f->fd = -1;
  if (atomic_file_sync_directory(f->path) != 0)
    return error_set(err, "%s is written, but its directory could not be synced to the disk: %s", f->path,
                     strerror(errno));
  return 0;
}

#endif /* COMMON_ATOMIC_FILE_H */
