/*
 * unsynced: an LD_PRELOAD shim that makes writes which were never synced losable.
 *
 * kill -9 keeps the page cache: a killed service finds every write it ever made, synced or not, so a test that kills it
 * proves nothing about power loss. Under this shim each change to a database file first appends what it overwrites to an
 * undo file, and a successful fsync or fdatasync empties that undo file. After a kill the undo files hold exactly what a
 * power cut could have taken; unsynced.rs takes it, by applying them backwards.
 *
 * UNSYNCED_DIR       data directory; files below it named *.db, *.db-wal, *.db-journal are watched when open for writing
 * UNSYNCED_UNDO_DIR  existing directory, for that data directory only: an undo file per watched path, and a link `data`
 *
 * A kill is safe at any point, because the record comes first and holds only old bytes and the old size:
 *   in the middle of a record   it has no tail, so it is ignored; its write has not happened.
 *   between record and write    old bytes go over the same old bytes.
 *   in the middle of the write  the record covers the whole range.
 *   between sync and emptying   the caller has not seen the sync return, so it has promised nothing on it.
 *
 * It loses all since the last sync, file by file; it does not tear or reorder those writes, and takes names (create,
 * unlink) as durable at once. A change it cannot follow aborts the process: a shim that looks away turns tests green.
 * Not seen: dup'ed descriptors, writable shared mappings, stdio, raw system calls.
 */
#undef _FORTIFY_SOURCE /* some compilers set it; its inline wrappers collide with the definitions below */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "the ...64 names are aliases here");

#define MAGIC 0x756e73796e636564u /* "unsynced" */
#define MAX_FD 65536

/* An undo record is a head, old_len old bytes and a tail; unsynced.rs reads the same layout. */
struct head { uint64_t magic, offset, written, old_len, old_size; };
struct tail { uint64_t record_len, magic; };

/* One per watched path, never freed. The lock makes record + write one step, and sync + emptying. */
struct file {
    struct file *next;
    char *undo_path, *buf;
    int undo_fd;
    off_t undo_end; /* whole records end here */
    pthread_mutex_t lock;
};

static struct file *files, *by_fd[MAX_FD];
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *data_dir, *undo_dir;

/* The next definition in link order: libc's, or that of another shim. */
#define NEXT(name) ({ static __typeof__(&name) fn; if (!fn) fn = (__typeof__(&name))dlsym(RTLD_NEXT, #name); fn; })
#define ALIAS(name) __attribute__((alias(#name)))
#define MUST(condition, what, where) do { if (!(condition)) die(what, where); } while (0)

static void die(const char *what, const char *where)
{
    dprintf(2, "unsynced shim: %s: %s (errno %d)\n", what, where, errno);
    abort();
}

__attribute__((constructor)) static void start(void)
{
    MUST(data_dir = getenv("UNSYNCED_DIR"), "not set", "UNSYNCED_DIR");
    MUST(undo_dir = getenv("UNSYNCED_UNDO_DIR"), "not set", "UNSYNCED_UNDO_DIR");
}

static struct file *file_of(int fd) { return fd >= 0 && fd < MAX_FD ? __atomic_load_n(&by_fd[fd], __ATOMIC_ACQUIRE) : NULL; }
static void watch(int fd, struct file *f) { if (fd >= 0 && fd < MAX_FD) __atomic_store_n(&by_fd[fd], f, __ATOMIC_RELEASE); }

/* All that the file holds is durable, or the file is gone: nothing is left to lose. */
static void forget(struct file *f)
{
    MUST(!f->undo_end || !ftruncate(f->undo_fd, 0), "cannot empty", f->undo_path);
    f->undo_end = 0;
}

/* After an earlier kill an undo file may hold records, still good (a restart syncs nothing), and a torn one to cut off. */
static struct file *new_file(const char *undo_path)
{
    struct file *f = calloc(1, sizeof *f);
    MUST(f && (f->undo_path = strdup(undo_path)), "no memory", undo_path);
    pthread_mutex_init(&f->lock, NULL);
    f->undo_fd = open(undo_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    /* Two processes would mix their records; unsynced.rs tries the same lock, to see that the writer is dead. */
    MUST(f->undo_fd >= 0 && !flock(f->undo_fd, LOCK_EX | LOCK_NB), "cannot own", undo_path);
    struct head h;
    struct tail t;
    while (pread(f->undo_fd, &h, sizeof h, f->undo_end) == sizeof h && h.magic == MAGIC) {
        uint64_t len = sizeof h + h.old_len + sizeof t;
        if (pread(f->undo_fd, &t, sizeof t, f->undo_end + len - sizeof t) != sizeof t) break;
        if (t.magic != MAGIC || t.record_len != len) break;
        f->undo_end += len;
    }
    MUST(!ftruncate(f->undo_fd, f->undo_end), "cannot trim", undo_path);
    return f;
}

/* The watched file a path names, or NULL. It goes by name and opens nothing: closing any descriptor of a database file
 * drops the POSIX locks that SQLite holds on it. */
static struct file *lookup(int dirfd, const char *path)
{
    static const char *const suffixes[] = {".db", ".db-wal", ".db-journal"};
    char dir[PATH_MAX + 32], full[PATH_MAX], root[PATH_MAX], undo[2 * PATH_MAX];
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t base_len = strlen(base), hit = 0;
    for (int i = 0; i < 3; i++)
        hit |= base_len > strlen(suffixes[i]) && !strcmp(base + base_len - strlen(suffixes[i]), suffixes[i]);
    if (!hit || strlen(path) >= PATH_MAX) return NULL;
    int n = *path == '/' ? 0 : dirfd == AT_FDCWD ? sprintf(dir, "./") : sprintf(dir, "/proc/self/fd/%d/", dirfd);
    sprintf(dir + n, "%.*s", (int)(base - path), path);
    if (!realpath(dir, full) || !realpath(data_dir, root)) return NULL;
    size_t root_len = strlen(root);
    if (strncmp(full, root, root_len) || (full[root_len] && full[root_len] != '/')) return NULL;

    n = sprintf(undo, "%s/data", undo_dir);
    MUST(!symlink(root, undo) || (errno == EEXIST && realpath(undo, dir) && !strcmp(dir, root)),
         "no such directory, or another data directory's", undo_dir);
    n -= strlen("data");
    /* A file name cannot hold '/': the undo file of a/b.db is a%2Fb.db.undo. */
    snprintf(dir, sizeof dir, "%s/%s", full + root_len, base);
    for (const char *c = dir + strspn(dir, "/"); *c; c++) {
        MUST(n + 10 < (int)sizeof undo, "path too long", path);
        n += sprintf(undo + n, *c == '/' || *c == '%' ? "%%%02X" : "%c", *c);
    }
    sprintf(undo + n, ".undo");

    pthread_mutex_lock(&files_lock);
    struct file *f = files;
    while (f && strcmp(f->undo_path, undo)) f = f->next;
    if (!f) {
        f = new_file(undo);
        f->next = files;
        files = f;
    }
    pthread_mutex_unlock(&files_lock);
    return f;
}

/* Appends the record of a change that is about to touch `written` bytes and to destroy at most `destroyed`. */
static void remember(struct file *f, int fd, uint64_t offset, uint64_t written, uint64_t destroyed)
{
    struct stat st;
    MUST(!fstat(fd, &st), "cannot stat the file of", f->undo_path);
    uint64_t size = st.st_size, left = offset < size ? size - offset : 0, old_len = destroyed < left ? destroyed : left;
    struct head h = {MAGIC, offset, written, old_len, size};
    struct tail t = {sizeof h + old_len + sizeof t, MAGIC};
    MUST(f->buf = realloc(f->buf, t.record_len), "no memory", f->undo_path);
    memcpy(f->buf, &h, sizeof h);
    memcpy(f->buf + sizeof h + old_len, &t, sizeof t);
    ssize_t n;
    for (uint64_t done = 0; done < old_len; done += n)
        MUST((n = pread(fd, f->buf + sizeof h + done, old_len - done, offset + done)) > 0, "no old bytes", f->undo_path);
    for (uint64_t done = 0; done < t.record_len; done += n)
        MUST((n = pwrite(f->undo_fd, f->buf + done, t.record_len - done, f->undo_end + done)) > 0, "no append", f->undo_path);
    f->undo_end += t.record_len;
}

/* open and close */

static int open_at(int dirfd, const char *path, int flags, mode_t mode)
{
    struct file *f = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC ? lookup(dirfd, path) : NULL;
    int fd;
    if (!f) {
        fd = NEXT(openat)(dirfd, path, flags, mode);
        watch(fd, NULL); /* should its last close not have been seen */
        return fd;
    }
    pthread_mutex_lock(&f->lock);
    int existed = !faccessat(dirfd, path, F_OK, 0);
    /* Readable, for the old bytes; truncated only below, for the record to come first. */
    fd = NEXT(openat)(dirfd, path, (flags & ~(O_ACCMODE | O_TRUNC)) | O_RDWR, mode);
    MUST(fd < MAX_FD, "descriptor too high", path);
    if (fd >= 0 && !existed) forget(f); /* a new file does not inherit what a deleted one left */
    watch(fd, f);
    pthread_mutex_unlock(&f->lock);
    MUST(fd < 0 || !(flags & O_TRUNC) || !ftruncate(fd, 0), "cannot truncate", path);
    return fd;
}

#define OPEN(dirfd) \
    va_list ap; \
    va_start(ap, flags); \
    mode_t mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0; \
    va_end(ap); \
    return open_at(dirfd, path, flags, mode)
int open(const char *path, int flags, ...) { OPEN(AT_FDCWD); }
int openat(int dirfd, const char *path, int flags, ...) { OPEN(dirfd); }
int creat(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int __open_2(const char *path, int flags) { return open_at(AT_FDCWD, path, flags, 0); } /* open, under _FORTIFY_SOURCE */
int __openat_2(int dirfd, const char *path, int flags) { return open_at(dirfd, path, flags, 0); }

/* Before the real close: from then on another thread may be given the number. Unsynced bytes stay unsynced. */
int close(int fd) { watch(fd, NULL); return NEXT(close)(fd); }

int unlinkat(int dirfd, const char *path, int flags)
{
    struct file *f = flags & AT_REMOVEDIR ? NULL : lookup(dirfd, path);
    if (!f) return NEXT(unlinkat)(dirfd, path, flags);
    pthread_mutex_lock(&f->lock);
    int rc = NEXT(unlinkat)(dirfd, path, flags);
    if (!rc) {
        forget(f);
        /* The path may be created anew; descriptors of the deleted file must not write or sync on its account. */
        for (int fd = 0; fd < MAX_FD; fd++) if (file_of(fd) == f) watch(fd, NULL);
    }
    pthread_mutex_unlock(&f->lock);
    return rc;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

/* changes: the record, then the real call; and syncs: the real call, then nothing left to lose. Nobody gets in between. */

#define UNDER_LOCK(type, before, real, after) \
    struct file *f = file_of(fd); \
    if (!f) return real; \
    pthread_mutex_lock(&f->lock); \
    before; \
    type rc = real; \
    after; \
    pthread_mutex_unlock(&f->lock); \
    return rc
#define CHANGE(type, real, offset, written, destroyed) UNDER_LOCK(type, remember(f, fd, offset, written, destroyed), real, )
#define SYNC(real) UNDER_LOCK(int, , real, if (!rc) forget(f))

static off_t position(int fd) { return lseek(fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR); }
ssize_t write(int fd, const void *buf, size_t n) { CHANGE(ssize_t, NEXT(write)(fd, buf, n), position(fd), n, n); }
ssize_t pwrite(int fd, const void *buf, size_t n, off_t at) { CHANGE(ssize_t, NEXT(pwrite)(fd, buf, n, at), at, n, n); }
int ftruncate(int fd, off_t size) { CHANGE(int, NEXT(ftruncate)(fd, size), size, 0, UINT64_MAX); }
int posix_fallocate(int fd, off_t at, off_t n) { CHANGE(int, NEXT(posix_fallocate)(fd, at, n), at, 0, 0); } /* only grows */
int fsync(int fd) { SYNC(NEXT(fsync)(fd)); }
int fdatasync(int fd) { SYNC(NEXT(fdatasync)(fd)); }

/* not followed: refuse, do not miss */

#define REFUSE(type, name, watched, params, args) \
    type name params { MUST(!(watched), "call not followed on a watched file", #name); return NEXT(name) args; }
REFUSE(ssize_t, writev, file_of(fd), (int fd, const struct iovec *v, int n), (fd, v, n))
REFUSE(ssize_t, pwritev, file_of(fd), (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
REFUSE(ssize_t, sendfile, file_of(fd), (int fd, int in, off_t *at, size_t n), (fd, in, at, n))
REFUSE(ssize_t, copy_file_range, file_of(fd), (int in, off_t *i, int fd, off_t *o, size_t n, unsigned u), (in, i, fd, o, n, u))
REFUSE(int, fallocate, file_of(fd), (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))
REFUSE(int, truncate, lookup(AT_FDCWD, path), (const char *path, off_t n), (path, n))
REFUSE(int, rename, lookup(AT_FDCWD, a) || lookup(AT_FDCWD, b), (const char *a, const char *b), (a, b))

/* off_t has 64 bits: the same functions under their other names */
int open64(const char *, int, ...) ALIAS(open);
int openat64(int, const char *, int, ...) ALIAS(openat);
int creat64(const char *, mode_t) ALIAS(creat);
int __open64_2(const char *, int) ALIAS(__open_2);
int __openat64_2(int, const char *, int) ALIAS(__openat_2);
ssize_t pwrite64(int, const void *, size_t, off_t) ALIAS(pwrite);
int ftruncate64(int, off_t) ALIAS(ftruncate);
int posix_fallocate64(int, off_t, off_t) ALIAS(posix_fallocate);
ssize_t pwritev64(int, const struct iovec *, int, off_t) ALIAS(pwritev);
ssize_t sendfile64(int, int, off_t *, size_t) ALIAS(sendfile);
int fallocate64(int, int, off_t, off_t) ALIAS(fallocate);
int truncate64(const char *, off_t) ALIAS(truncate);
