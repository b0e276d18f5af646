//go:build ignore

// Preloaded into a redis-server, this library adds an offset to the server's wall clock. The offset
// can be changed while the server runs: clock_linux.go has the other side. The line above makes go
// build, which accepts C only with cgo, ignore this file.
//
// The time comes by system calls, not from the C library's functions of the same
// names. Those would have to be looked up, for which the dynamic linker may
// allocate memory; and the allocator of redis-server asks for the time while it
// holds its own locks, before anything else has run. A system call has no such
// needs. It is slower than the library's way, by less than a command takes.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

// With a smaller long there may be a time_t, and a system call, of either size.
_Static_assert(sizeof(long) == 8 && sizeof(time_t) == 8, "only for 64-bit systems");

#define SECOND INT64_C(1000000000)

// The content of the file.
struct shared {
	_Atomic int64_t offset; // in nanoseconds, written by the other side
	_Atomic int64_t pid;    // of the process that has mapped it, written by this side
	_Atomic int64_t turn;   // odd while the other side changes the next two
	_Atomic int64_t rate;   // how many nanoseconds the clock gains in a second
	_Atomic int64_t since;  // from when on, by the monotonic clock, in nanoseconds
};

// There is no offset until the file is mapped, and none if it cannot be.
static struct shared none, *shared = &none;

__attribute__((constructor)) static void map_file(void)
{
	const char *path = getenv("REDISPROC_CLOCK");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *p = mmap(NULL, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return;
	shared = p;
	shared->pid = getpid();
}

// How far the wall clock is ahead.
static int64_t ahead(void)
{
	for (;;) {
		int64_t turn = shared->turn, rate = shared->rate, since = shared->since, ns = shared->offset;
		if (turn % 2 || turn != shared->turn)
			continue;
		if (rate == 0)
			return ns;
		struct timespec ts;
		syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts); // cannot fail
		int64_t us = (ts.tv_sec * SECOND + ts.tv_nsec - since) / 1000;
		return ns + us * rate / 1000000;
	}
}

// Only the wall clocks have the offset, as only they are set on a host.
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int failed = syscall(SYS_clock_gettime, id, ts);
	if (failed || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
		return failed;
	int64_t now = ts->tv_sec * SECOND + ts->tv_nsec + ahead();
	*ts = (struct timespec){now / SECOND, now % SECOND};
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts); // cannot fail
	*tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
	if (zone) // the C library has no other answer, either
		*(struct timezone *)zone = (struct timezone){0};
	return 0;
}

time_t time(time_t *t)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts); // cannot fail
	return t ? (*t = ts.tv_sec) : ts.tv_sec;
}
