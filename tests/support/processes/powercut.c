/* Preloaded into a redis-server by tests/support/processes/own_redis.rs: remembers what has really reached the disk.
 *
 * After each fsync or fdatasync of a file F that succeeded, F.synced holds the size that F had when the call began: what was
 * written while the disk was busy is not promised. "Power cut" is then: kill -9, cut each file to its recorded size (0
 * without a record). A renamed file keeps its record. The page cache survives a kill -9, so nothing less than this can show
 * what a power cut loses.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void record(int fd, long long size)
{
    char link[64], path[PATH_MAX], text[32];
    ssize_t length;
    int out, saved = errno;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 8);
    if (length > 0) {
        strcpy(path + length, ".synced");
        /* One write of a fixed width: a reader never sees half a number, and a kill leaves the old one or the new one. */
        snprintf(text, sizeof text, "%020lld\n", size);
        out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (out >= 0) {
            if (pwrite(out, text, strlen(text), 0) < 0)
                unlink(path);
            close(out);
        }
    }
    errno = saved;
}

static int synced(const char *name, int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat before;
    int is_file = fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
    int result = real(fd);

    if (result == 0 && is_file)
        record(fd, (long long)before.st_size);
    return result;
}

int fsync(int fd)
{
    return synced("fsync", fd);
}

int fdatasync(int fd)
{
    return synced("fdatasync", fd);
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    char old[PATH_MAX], new[PATH_MAX];
    int result = real(from, to), saved = errno;

    if (result == 0 && strlen(from) < PATH_MAX - 8 && strlen(to) < PATH_MAX - 8) {
        snprintf(old, sizeof old, "%s.synced", from);
        snprintf(new, sizeof new, "%s.synced", to);
        if (real(old, new) != 0)
            unlink(new);
    }
    errno = saved;
    return result;
}
