/* A CUDA runtime and driver without a card: memory is a number that goes up and down.
 *
 * PyTorch's own libc10_cuda.so is loaded against this library, so its allocator makes every
 * decision itself and only the driver is ours. Addresses rise with every segment, events are
 * done when `fake_events_done` says so, and `fake_capacity` is what the card can give.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, OUT_OF_MEMORY = 2, NOT_READY = 600 };

#define TOTAL_GLOBAL_MEM 288 /* its place in cudaDeviceProp since CUDA 10 */
#define GAP (1ULL << 40)
#define ADDRESSES 65536

size_t fake_capacity = 1ULL << 46;
size_t fake_total = 1ULL << 37;
size_t fake_used = 0;
int fake_events_done = 1;
int fake_capturing = 0;

static uint64_t next_address = GAP;
static size_t sizes[ADDRESSES]; /* bytes of the segment at address (index + 1) * GAP */

static int take(size_t size) {
  if (size > fake_capacity || fake_used > fake_capacity - size)
    return 0;
  fake_used += size;
  return 1;
}

static uint64_t new_address(size_t room) {
  uint64_t address = next_address;
  next_address += (room / GAP + 1) * GAP;
  return address;
}

int cudaMalloc(void** pointer, size_t size) {
  if (!take(size))
    return OUT_OF_MEMORY;
  uint64_t address = new_address(size);
  sizes[(address / GAP - 1) % ADDRESSES] = size;
  *pointer = (void*)address;
  return SUCCESS;
}

int cudaFree(void* pointer) {
  if (pointer != NULL)
    fake_used -= sizes[((uint64_t)pointer / GAP - 1) % ADDRESSES];
  return SUCCESS;
}

int cudaMemGetInfo(size_t* available, size_t* total) {
  *total = fake_total;
  *available = fake_used < fake_capacity ? fake_capacity - fake_used : 0;
  return SUCCESS;
}

int cudaGetDeviceProperties(char* properties, int device) {
  (void)device;
  memset(properties, 0, TOTAL_GLOBAL_MEM + sizeof(size_t));
  memcpy(properties + TOTAL_GLOBAL_MEM, &fake_total, sizeof(size_t));
  return SUCCESS;
}

int cudaEventQuery(void* event) {
  (void)event;
  return fake_events_done ? SUCCESS : NOT_READY;
}

int cudaGetDeviceCount(int* count) { *count = 1; return SUCCESS; }
int cudaGetDevice(int* device) { *device = 0; return SUCCESS; }
int cudaDriverGetVersion(int* version) { *version = 13020; return SUCCESS; }
int cudaGetLastError(void) { return SUCCESS; }
const char* cudaGetErrorName(int error) { (void)error; return "fake"; }
const char* cudaGetErrorString(int error) { (void)error; return "fake"; }
int cudaEventCreateWithFlags(void** event, unsigned flags) {
  (void)flags;
  *event = malloc(1);
  return SUCCESS;
}
int cudaEventDestroy(void* event) { free(event); return SUCCESS; }
int cudaStreamIsCapturing(void* stream, int* status) {
  (void)stream;
  *status = fake_capturing;
  return SUCCESS;
}
int cudaStreamGetCaptureInfo(void* stream, int* status) {
  return cudaStreamIsCapturing(stream, status);
}
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return SUCCESS;
}

#define ALWAYS(name) int name(void) { return SUCCESS; }
ALWAYS(cudaSetDevice)
ALWAYS(cudaEventRecord)
ALWAYS(cudaEventSynchronize)
ALWAYS(cudaDeviceSynchronize)
ALWAYS(cudaStreamSynchronize)
ALWAYS(cudaThreadExchangeStreamCaptureMode)

#define NEVER(name) int name(void) { fputs(#name, stderr); abort(); }
NEVER(cudaDeviceCanAccessPeer)
NEVER(cudaDeviceEnablePeerAccess)
NEVER(cudaDeviceGetDefaultMemPool)
NEVER(cudaDeviceGetGraphMemAttribute)
NEVER(cudaDeviceSetGraphMemAttribute)
NEVER(cudaEventElapsedTime)
NEVER(cudaFreeAsync)
NEVER(cudaGraphNodeGetDependencies)
NEVER(cudaIpcCloseMemHandle)
NEVER(cudaIpcGetMemHandle)
NEVER(cudaIpcOpenMemHandle)
NEVER(cudaMallocAsync)
NEVER(cudaMemPoolGetAttribute)
NEVER(cudaMemPoolSetAccess)
NEVER(cudaMemPoolSetAttribute)
NEVER(cudaMemPoolTrimTo)
NEVER(cudaMemcpy)
NEVER(cudaMemcpyAsync)
NEVER(cudaMemcpyPeerAsync)
NEVER(cudaStreamCreateWithPriority)
NEVER(cudaStreamQuery)
NEVER(cudaStreamWaitEvent)

static int reserve(uint64_t* pointer, size_t size) {
  *pointer = new_address(size);
  return SUCCESS;
}

static int create(uint64_t* handle, size_t size) {
  if (!take(size))
    return OUT_OF_MEMORY;
  *handle = size;
  return SUCCESS;
}

static int release(uint64_t handle) {
  fake_used -= handle;
  return SUCCESS;
}

static int attribute(int* value) {
  *value = 0; /* no fabric handles */
  return SUCCESS;
}

static int done(void) { return SUCCESS; }

int cudaGetDriverEntryPointByVersion(
    const char* name, void** function, unsigned version, unsigned long long flags,
    int* result) {
  (void)version, (void)flags;
  *result = SUCCESS;
  if (strcmp(name, "cuMemAddressReserve") == 0)
    *function = (void*)reserve;
  else if (strcmp(name, "cuMemCreate") == 0)
    *function = (void*)create;
  else if (strcmp(name, "cuMemRelease") == 0)
    *function = (void*)release;
  else if (strcmp(name, "cuDeviceGetAttribute") == 0)
    *function = (void*)attribute;
  else
    *function = (void*)done;
  return SUCCESS;
}
