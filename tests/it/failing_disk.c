/*
 * failing_disk: an LD_PRELOAD shim that makes a disk fail and work again under a running process, without a disk.
 *
 * FAILING_DISK_DIR     the directory whose files are on that disk
 * FAILING_DISK_SPARED  how the names of those files end that do not fail; none by default
 * FAILING_DISK_SWITCH  while this file exists, whatever changes those files fails with the errno whose number it holds
 *
 * ENOSPC leaves existing files open for writing; EROFS refuses that, too. EIO fails syncs alone. Reads go on. Shared
 * mappings are not seen.
 */
#undef _FORTIFY_SOURCE /* some compilers set it; its inline wrappers collide with the definitions below */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "the ...64 names are aliases here");

#define NEXT(name) ({ static __typeof__(&name) fn; if (!fn) fn = (__typeof__(&name))dlsym(RTLD_NEXT, #name); fn; })
#define ALIAS(name) __attribute__((alias(#name)))

int open(const char *path, int flags, ...);

/* The errno that changes get now; 0 while the disk works. */
static int failure(void)
{
    char digits[8] = "";
    const char *file = getenv("FAILING_DISK_SWITCH");
    int fd = file ? NEXT(open)(file, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return 0;
    if (read(fd, digits, sizeof digits - 1) < 0) digits[0] = 0;
    close(fd);
    return atoi(digits);
}

static int on_disk(const char *path)
{
    char full[PATH_MAX], root[PATH_MAX], dir[PATH_MAX];
    const char *wanted = getenv("FAILING_DISK_DIR"), *slash = strrchr(path, '/');
    const char *spared = getenv("FAILING_DISK_SPARED");
    if (!wanted || !slash || slash == path) return 0;
    if (spared && strlen(path) >= strlen(spared) && !strcmp(path + strlen(path) - strlen(spared), spared)) return 0;
    snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
    return realpath(dir, full) && realpath(wanted, root) && !strcmp(full, root);
}

static int fd_on_disk(int fd)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    return n > 0 && (path[n] = 0, on_disk(path));
}

#define FAIL(on, value) do { int f = failure(); if (f && f != EIO && (on)) { errno = f; return value; } } while (0)

static int open_at(int dirfd, const char *path, int flags, mode_t mode)
{
    int f = failure();
    int makes = flags & O_CREAT && faccessat(dirfd, path, F_OK, 0), writes = (flags & O_ACCMODE) != O_RDONLY;
    if (f && f != EIO && (makes || (writes && f == EROFS)) && on_disk(path)) { errno = f; return -1; }
    return NEXT(openat)(dirfd, path, flags, mode);
}
#define OPEN(dirfd) \
    va_list ap; \
    va_start(ap, flags); \
    mode_t mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0; \
    va_end(ap); \
    return open_at(dirfd, path, flags, mode)
int open(const char *path, int flags, ...) { OPEN(AT_FDCWD); }
int openat(int dirfd, const char *path, int flags, ...) { OPEN(dirfd); }

ssize_t write(int fd, const void *buf, size_t n) { FAIL(fd_on_disk(fd), -1); return NEXT(write)(fd, buf, n); }
ssize_t pwrite(int fd, const void *buf, size_t n, off_t at) { FAIL(fd_on_disk(fd), -1); return NEXT(pwrite)(fd, buf, n, at); }
int ftruncate(int fd, off_t size) { FAIL(fd_on_disk(fd), -1); return NEXT(ftruncate)(fd, size); }
int fsync(int fd) { if (failure() == EIO && fd_on_disk(fd)) { errno = EIO; return -1; } return NEXT(fsync)(fd); }
int fdatasync(int fd) { if (failure() == EIO && fd_on_disk(fd)) { errno = EIO; return -1; } return NEXT(fdatasync)(fd); }
int unlink(const char *path)
{
    int f = failure();
    if (f == EROFS && on_disk(path)) { errno = f; return -1; }
    return NEXT(unlink)(path);
}

/* off_t has 64 bits: the same functions under their other names */
int open64(const char *, int, ...) ALIAS(open);
int openat64(int, const char *, int, ...) ALIAS(openat);
ssize_t pwrite64(int, const void *, size_t, off_t) ALIAS(pwrite);
int ftruncate64(int, off_t) ALIAS(ftruncate);
