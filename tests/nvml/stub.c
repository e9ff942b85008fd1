/* A libnvidia-ml.so.1 without a driver, for tests: it says what a file says, now.
 *
 * The file is named by NVML_STUB. A line each, fields separated by tabs:
 *   init     ERROR
 *   card     UUID NAME TOTAL USED RESERVED
 *   instance CARD UUID NUMBER TOTAL USED      CARD: index of the whole card
 *   process  UUID PID BYTES                   BYTES: -1 is "not available"
 *   client   UUID PID BYTES                   of MPS
 *   fail     UUID ERROR [FUNCTION]            a card, or one function of it
 * A card that has answered 15 (lost) stays lost until nvmlInit is called again.
 * Compiled with -DOLD it lacks what drivers before R510 lack.
 *
 * Names, layouts and numbers: nvml.h of the CUDA toolkit, as pynvml declares them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX 1024
#define LOST 15
enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };

typedef struct { char uuid[96], name[96]; unsigned long long total, used, reserved; int parent, number; } Device;
typedef struct { char uuid[96]; unsigned pid; unsigned long long nbytes; int is_client; } Process;
typedef struct { char uuid[96], function[64]; int error; } Failure;
typedef struct { unsigned pid; unsigned long long nbytes; unsigned gpu, compute; } Info;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;

static Device devices[MAX];
static Process processes[MAX];
static Failure failures[MAX];
static int num_devices, num_processes, num_failures, init_error, is_lost[MAX];

/* Read the file again if it was replaced. */
static void load(void) {
    static struct stat seen;
    struct stat now;
    const char *path = getenv("NVML_STUB");
    if (!path || stat(path, &now)) return;
    if (now.st_ino == seen.st_ino && !memcmp(&now.st_mtim, &seen.st_mtim, sizeof now.st_mtim)) return;
    seen = now;
    FILE *file = fopen(path, "r");
    char line[512], a[96], b[96], c[96];
    unsigned long long x, y, z;
    int number;
    num_devices = num_processes = num_failures = init_error = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "init\t%d", &number) == 1) {
            init_error = number;
        } else if (sscanf(line, "card\t%95[^\t]\t%95[^\t]\t%llu\t%llu\t%llu", a, b, &x, &y, &z) == 5) {
            Device found = {.total = x, .used = y, .reserved = z, .parent = -1};
            strcpy(found.uuid, a);
            strcpy(found.name, b);
            devices[num_devices++] = found;
        } else if (sscanf(line, "instance\t%d\t%95[^\t]\t%llu\t%llu\t%llu", &number, a, &z, &x, &y) == 5) {
            Device found = {.total = x, .used = y, .parent = number, .number = (int)z};
            strcpy(found.uuid, a);
            snprintf(found.name, sizeof found.name, "%.60s MIG", devices[number].name);
            devices[num_devices++] = found;
        } else if (sscanf(line, "process\t%95[^\t]\t%llu\t%lld", a, &x, (long long *)&y) == 3 ||
                   sscanf(line, "client\t%95[^\t]\t%llu\t%lld", a, &x, (long long *)&y) == 3) {
            Process found = {.pid = (unsigned)x, .nbytes = y, .is_client = line[0] == 'c'};
            strcpy(found.uuid, a);
            processes[num_processes++] = found;
        } else if ((number = sscanf(line, "fail\t%95[^\t]\t%95[^\t\n]\t%63[^\n]", a, b, c)) >= 2) {
            Failure found = {.error = atoi(b)};
            strcpy(found.uuid, a);
            strcpy(found.function, number == 3 ? c : "");
            failures[num_failures++] = found;
        }
    }
    if (file) fclose(file);
}

static Device *device_of(void *handle) { return &devices[(size_t)handle - 1]; }

/* Return the error that the file wants of a function for a card. */
static int failure(void *handle, const char *function) {
    size_t place = (size_t)handle;
    load();
    if (place == 0 || place > (size_t)num_devices) return INVALID;
    if (is_lost[place]) return LOST;
    for (int i = 0; i < num_failures; i++) {
        Failure *each = &failures[i];
        if (strcmp(each->uuid, device_of(handle)->uuid)) continue;
        if (each->function[0] && strcmp(each->function, function)) continue;
        if (each->error == LOST) is_lost[place] = 1;
        return each->error;
    }
    return OK;
}

#define CHECK(handle) do { int error = failure(handle, __func__); if (error) return error; } while (0)

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    load();
    memset(is_lost, 0, sizeof is_lost);
    return init_error;
}

int nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(int error) { (void)error; return "an error of the stub"; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    load();
    if (init_error) return init_error;
    *count = 0;
    for (int i = 0; i < num_devices; i++) *count += devices[i].parent < 0;
    return OK;
}

/* Whole cards come before all instances in the file. */
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    *handle = (void *)(size_t)(index + 1);
    CHECK(*handle);
    return OK;
}

int nvmlDeviceGetUUID(void *handle, char *text, unsigned length) {
    CHECK(handle);
    snprintf(text, length, "%s", device_of(handle)->uuid);
    return OK;
}

int nvmlDeviceGetName(void *handle, char *text, unsigned length) {
    CHECK(handle);
    snprintf(text, length, "%s", device_of(handle)->name);
    return OK;
}

int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
    CHECK(handle);
    *current = 0;
    for (int i = 0; i < num_devices; i++) *current |= devices[i].parent == (int)(size_t)handle - 1;
    *pending = *current;
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *count) {
    CHECK(handle);
    *count = 7;
    return OK;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **found) {
    CHECK(handle);
    for (int i = 0; i < num_devices; i++) {
        if (devices[i].parent != (int)(size_t)handle - 1 || index-- > 0) continue;
        *found = (void *)(size_t)(i + 1);
        return OK;
    }
    return NOT_FOUND;
}

int nvmlDeviceGetGpuInstanceId(void *handle, unsigned *number) {
    CHECK(handle);
    *number = (unsigned)device_of(handle)->number;
    return OK;
}

int nvmlDeviceGetMemoryInfo(void *handle, Memory *memory) {
    CHECK(handle);
    Device *device = device_of(handle);
    memory->total = device->total;
    memory->used = device->used + device->reserved;
    memory->free = memory->total - memory->used;
    return OK;
}

static int list(void *handle, unsigned *count, Info *infos, int are_clients) {
    unsigned found = 0;
    for (int i = 0; i < num_processes; i++) {
        Process *each = &processes[i];
        if (each->is_client != are_clients || strcmp(each->uuid, device_of(handle)->uuid)) continue;
        if (infos && found < *count) {
            Info info = {each->pid, each->nbytes, 0, 0};
            infos[found] = info;
        }
        found++;
    }
    int is_small = found > (infos ? *count : 0);
    *count = found;
    return is_small ? TOO_SMALL : OK;
}

int nvmlDeviceGetComputeRunningProcesses_v2(void *handle, unsigned *count, Info *infos) {
    CHECK(handle);
    return list(handle, count, infos, 0);
}

#ifndef OLD
int nvmlDeviceGetMemoryInfo_v2(void *handle, Memory2 *memory) {
    CHECK(handle);
    Device *device = device_of(handle);
    memory->total = device->total;
    memory->used = device->used;
    memory->reserved = device->reserved;
    memory->free = device->total - device->used - device->reserved;
    return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, Info *infos) {
    CHECK(handle);
    return list(handle, count, infos, 0);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *handle, unsigned *count, Info *infos) {
    CHECK(handle);
    return list(handle, count, infos, 1);
}
#endif
