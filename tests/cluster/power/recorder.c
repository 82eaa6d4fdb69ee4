/* Records what a process does to the files of one directory: for LD_PRELOAD.
 *
 * POWER_DIRECTORY is the directory, POWER_RECORDING the file of the recording. `disk.py` reads it
 * and makes what a power cut could have left. A sync returns after POWER_SYNC_US, and no disk is
 * asked: the recording decides what was durable.
 *
 * A call and its entry are one step for all threads, and the entry is first. So after a SIGKILL the
 * last entry may be of a call that was not made; such a call has not returned.
 */

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
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MOST_DESCRIPTORS 65536

static pthread_mutex_t step = PTHREAD_MUTEX_INITIALIZER;
static char directory[PATH_MAX];
static size_t directory_length;
static int recording = -1;
static useconds_t sync_us;
static char is_ours[MOST_DESCRIPTORS];

struct __attribute__((packed)) entry {
	uint8_t kind;
	int32_t descriptor;
	int64_t offset;
	uint32_t length;
};

static void fail(const char *what) {
	dprintf(STDERR_FILENO, "recorder.c: %s\n", what);
	abort();
}

__attribute__((constructor)) static void begin(void) {
	const char *delay = getenv("POWER_SYNC_US"), *path = getenv("POWER_RECORDING");
	if (!path || !realpath(getenv("POWER_DIRECTORY"), directory)) fail("no directory, or no recording");
	directory_length = strlen(directory);
	sync_us = delay ? (useconds_t)atoi(delay) : 0;
	recording = REAL(open64)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (recording < 0) fail("cannot open the recording");
}

/* The name of a path in the directory, "" for the directory itself, NULL for what is elsewhere. */
static const char *name_of(const char *path, char *buffer) {
	char folder[PATH_MAX];
	if (realpath(path, buffer) && strcmp(buffer, directory) == 0) return "";
	if (strlen(path) >= sizeof folder) return NULL;
	strcpy(folder, path);
	char *slash = strrchr(folder, '/');
	const char *name = slash ? path + (slash + 1 - folder) : path;
	strcpy(slash ? slash + (slash == folder) : folder, slash ? "" : ".");
	if (!realpath(folder, buffer) || strcmp(buffer, directory) != 0) return NULL;
	snprintf(buffer, PATH_MAX, "%s", name);
	return buffer;
}

static int ours(int descriptor) {
	return descriptor >= 0 && descriptor < MOST_DESCRIPTORS && is_ours[descriptor];
}

static void record(char kind, int descriptor, off_t offset, const void *data, size_t length) {
	struct entry head = {(uint8_t)kind, descriptor, offset, (uint32_t)length};
	struct iovec parts[2] = {{&head, sizeof head}, {(void *)data, length}};
	if (REAL(writev)(recording, parts, 2) != (ssize_t)(sizeof head + length)) fail("a short entry");
}

static int opened(int at, const char *path, int flags, mode_t mode) {
	char buffer[PATH_MAX];
	if (at != AT_FDCWD && path[0] != '/') return REAL(openat64)(at, path, flags, mode);
	pthread_mutex_lock(&step);
	const char *name = name_of(path, buffer);
	int descriptor = REAL(openat64)(at, path, flags, mode), error = errno;
	if (name && descriptor >= MOST_DESCRIPTORS) fail("too many descriptors");
	if (name && descriptor >= 0) {
		is_ours[descriptor] = 1;
		record(flags & O_TRUNC ? 'O' : 'o', descriptor, 0, name, strlen(name));
	}
	pthread_mutex_unlock(&step);
	errno = error;
	return descriptor;
}

#define OPEN_AT(at, path, flags)                                                                   \
	mode_t mode = 0;                                                                               \
	if (flags & (O_CREAT | __O_TMPFILE)) {                                                         \
		va_list more;                                                                              \
		va_start(more, flags);                                                                     \
		mode = va_arg(more, mode_t);                                                               \
		va_end(more);                                                                              \
	}                                                                                              \
	return opened(at, path, flags, mode);

int open(const char *path, int flags, ...) { OPEN_AT(AT_FDCWD, path, flags) }
int open64(const char *path, int flags, ...) { OPEN_AT(AT_FDCWD, path, flags) }
int openat(int at, const char *path, int flags, ...) { OPEN_AT(at, path, flags) }
int openat64(int at, const char *path, int flags, ...) { OPEN_AT(at, path, flags) }

int close(int descriptor) {
	if (!ours(descriptor)) return REAL(close)(descriptor);
	pthread_mutex_lock(&step);
	record('c', descriptor, 0, NULL, 0);
	is_ours[descriptor] = 0;
	int result = REAL(close)(descriptor);
	pthread_mutex_unlock(&step);
	return result;
}

static ssize_t written(int descriptor, const void *data, size_t length, off_t offset) {
	pthread_mutex_lock(&step);
	record('w', descriptor, offset, data, length);
	if (REAL(pwrite64)(descriptor, data, length, offset) != (ssize_t)length) fail("a short write");
	pthread_mutex_unlock(&step);
	return (ssize_t)length;
}

ssize_t write(int descriptor, const void *data, size_t length) {
	if (!ours(descriptor)) return REAL(write)(descriptor, data, length);
	off_t at = lseek(descriptor, 0, SEEK_CUR);
	ssize_t result = written(descriptor, data, length, at);
	lseek(descriptor, at + result, SEEK_SET);
	return result;
}

ssize_t pwrite64(int descriptor, const void *data, size_t length, off64_t offset) {
	if (!ours(descriptor)) return REAL(pwrite64)(descriptor, data, length, offset);
	return written(descriptor, data, length, offset);
}

ssize_t pwrite(int descriptor, const void *data, size_t length, off_t offset) {
	return pwrite64(descriptor, data, length, offset);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
	if (ours(descriptor)) fail("writev is not recorded");
	return REAL(writev)(descriptor, parts, count);
}

int ftruncate64(int descriptor, off64_t size) {
	if (!ours(descriptor)) return REAL(ftruncate64)(descriptor, size);
	pthread_mutex_lock(&step);
	record('t', descriptor, size, NULL, 0);
	int result = REAL(ftruncate64)(descriptor, size);
	pthread_mutex_unlock(&step);
	return result;
}

int ftruncate(int descriptor, off_t size) { return ftruncate64(descriptor, size); }

static int synced(int descriptor) {
	pthread_mutex_lock(&step);
	record('b', descriptor, 0, NULL, 0);
	pthread_mutex_unlock(&step);
	usleep(sync_us);
	pthread_mutex_lock(&step);
	record('s', descriptor, 0, NULL, 0);
	pthread_mutex_unlock(&step);
	return 0;
}

int fsync(int descriptor) { return ours(descriptor) ? synced(descriptor) : REAL(fsync)(descriptor); }

int fdatasync(int descriptor) {
	return ours(descriptor) ? synced(descriptor) : REAL(fdatasync)(descriptor);
}

int rename(const char *from, const char *to) {
	char first[PATH_MAX], second[PATH_MAX], both[2 * PATH_MAX];
	pthread_mutex_lock(&step);
	const char *old = name_of(from, first), *new = name_of(to, second);
	if (!old != !new) fail("a file moves into the directory, or out of it");
	struct stat found;
	if (old && stat(from, &found) == 0) {
		int length = snprintf(both, sizeof both, "%s/%s", old, new);
		record('r', -1, 0, both, (size_t)length);
	}
	int result = REAL(rename)(from, to);
	pthread_mutex_unlock(&step);
	return result;
}

int unlink(const char *path) {
	char buffer[PATH_MAX];
	pthread_mutex_lock(&step);
	const char *name = name_of(path, buffer);
	struct stat found;
	if (name && stat(path, &found) == 0) record('u', -1, 0, name, strlen(name));
	int result = REAL(unlink)(path), error = errno;
	pthread_mutex_unlock(&step);
	errno = error;
	return result;
}
