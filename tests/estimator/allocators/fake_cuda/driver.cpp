// Drives PyTorch's own caching allocator, built into libc10_cuda.so, by commands on standard input.
//
// One command, one line of answer: 1 or 0 (out of memory), bytes reserved, bytes allocated, and
// requests that emptied the cache. "query" answers the segments of a snapshot, live blocks
// positive and cached ones negative; "config" answers the options as they were understood.

#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <string>

extern "C" size_t fake_capacity, fake_total, fake_used;
extern "C" int fake_events_done, fake_capturing;

namespace c10::cuda::_internal {
C10_CUDA_API void setHasPrimaryContext(bool (*)(c10::DeviceIndex)); // in no header
}

namespace allocator = c10::cuda::CUDACachingAllocator;

static void* stream_of(int number) {
  return reinterpret_cast<void*>(static_cast<size_t>(number) * 0x1000);
}

static void answer(bool done) {
  auto stats = allocator::getDeviceStats(0);
  printf(
      "%d %zu %ld %ld\n", done, fake_used, stats.allocated_bytes[0].current,
      stats.num_alloc_retries);
}

static void query() {
  for (const auto& segment : allocator::snapshot().segments) {
    for (const auto& block : segment.blocks)
      printf("%s%zu,", block.active ? "" : "-", block.size);
    printf(" ");
  }
  printf("\n");
}

static void config() {
  using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
  printf(
      "%zu %zu %zu %f %d %f", Config::large_segment_size(), Config::max_split_size(),
      Config::max_non_split_rounding_size(), Config::garbage_collection_threshold(),
      Config::use_expandable_segments(),
      allocator::CUDAAllocatorConfig::per_process_memory_fraction());
  for (int interval = 0; interval < 16; ++interval)
    printf(" %zu", Config::roundup_power2_divisions(size_t{1} << (20 + interval)));
  printf("\n");
}

int main() {
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
  allocator::get()->init(1);
  // The default kind of handle would ask NVML about fabrics.
  allocator::CUDAAllocatorConfig::set_expandable_segments_handle_type(
      allocator::Expandable_Segments_Handle_Type::POSIX_FD);
  std::map<long, void*> live;
  std::string command;
  while (std::cin >> command) {
    long tensor = 0;
    size_t nbytes = 0;
    int number = 0;
    bool done = true;
    if (command == "alloc") {
      std::cin >> tensor >> nbytes >> number;
      try {
        live[tensor] = allocator::get()->raw_alloc_with_stream(
            nbytes, static_cast<cudaStream_t>(stream_of(number)));
      } catch (const c10::OutOfMemoryError&) {
        done = false;
      }
    } else if (command == "free") {
      std::cin >> tensor;
      allocator::get()->raw_delete(live.at(tensor));
      live.erase(tensor);
    } else if (command == "use") {
      std::cin >> tensor >> number;
      c10::DataPtr pointer(
          live.at(tensor), live.at(tensor), allocator::get()->raw_deleter(),
          c10::Device(c10::kCUDA, 0));
      allocator::get()->recordStream(
          pointer, c10::cuda::getStreamFromExternal(
                       static_cast<cudaStream_t>(stream_of(number)), 0));
      pointer.release_context();
    } else if (command == "empty") {
      allocator::emptyCache();
    } else if (command == "begin") {
      std::cin >> number;
      allocator::get()->beginAllocateToPool(
          0, {0, number},
          [number](cudaStream_t stream) { return stream == stream_of(number); });
    } else if (command == "end") {
      std::cin >> number;
      allocator::get()->endAllocateToPool(0, {0, number});
    } else if (command == "mark") {
      fake_capturing = 1;
      allocator::get()->markCaptureBegin(0);
    } else if (command == "unmark") {
      allocator::get()->markCaptureEnd(0);
      fake_capturing = 0;
    } else if (command == "release") {
      std::cin >> number;
      allocator::get()->releasePool(0, {0, number});
    } else if (command == "capacity") {
      std::cin >> fake_capacity;
    } else if (command == "total") {
      std::cin >> fake_total;
    } else if (command == "events") {
      std::cin >> fake_events_done;
    } else if (command == "fraction") {
      double fraction = 0;
      std::cin >> fraction;
      allocator::get()->setMemoryFraction(fraction, 0);
    } else if (command == "query") {
      query();
      continue;
    } else if (command == "config") {
      config();
      continue;
    }
    answer(done);
  }
}
