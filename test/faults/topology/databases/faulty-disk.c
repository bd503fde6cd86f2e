// Faults of a disk for the server that loads this library before the C library (LD_PRELOAD). The file named by
// FAULTY_DISK has two numbers: how many ms each flush takes longer, and 1 if no space is left.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int faults(int *flush_ms, int *full) {
  const char *name = getenv("FAULTY_DISK");
  char text[32];
  *flush_ms = *full = 0;
  if (!name) return 0;
  int fd = open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return 0;
  text[length] = 0;
  return sscanf(text, "%d %d", flush_ms, full) == 2;
}

// Sockets and pipes are no disk.
static int is_full(int fd) {
  int flush_ms, full, before = errno;
  struct stat about;
  int result = faults(&flush_ms, &full) && full && fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  errno = result ? ENOSPC : before;
  return result;
}

static void flush(void) {
  int flush_ms, full, before = errno;
  if (faults(&flush_ms, &full) && flush_ms > 0) {
    struct timespec time = {flush_ms / 1000, (flush_ms % 1000) * 1000000L};
    nanosleep(&time, NULL);
  }
  errno = before;
}

#define NEXT(name) \
  static __typeof__(name) *next; \
  if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

int fsync(int fd) { NEXT(fsync); flush(); return next(fd); }
int fdatasync(int fd) { NEXT(fdatasync); flush(); return next(fd); }
ssize_t write(int fd, const void *data, size_t size) { NEXT(write); return is_full(fd) ? -1 : next(fd, data, size); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { NEXT(pwrite); return is_full(fd) ? -1 : next(fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { NEXT(pwrite64); return is_full(fd) ? -1 : next(fd, data, size, at); }
ssize_t pwritev(int fd, const struct iovec *data, int count, off_t at) { NEXT(pwritev); return is_full(fd) ? -1 : next(fd, data, count, at); }
ssize_t pwritev64(int fd, const struct iovec *data, int count, off64_t at) { NEXT(pwritev64); return is_full(fd) ? -1 : next(fd, data, count, at); }
int posix_fallocate(int fd, off_t at, off_t size) { NEXT(posix_fallocate); return is_full(fd) ? ENOSPC : next(fd, at, size); }
int posix_fallocate64(int fd, off64_t at, off64_t size) { NEXT(posix_fallocate64); return is_full(fd) ? ENOSPC : next(fd, at, size); }
