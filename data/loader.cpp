#include "dtrain/data/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "data/sample_order.h"
#include "dtrain/io/record_file.h"
#include "libdtrain/core/cores.h"

namespace dtrain::data {
namespace {

using Clock = std::chrono::steady_clock;

// Training rows that a data set in object storage prefetches while the workers are at earlier ones. Evaluation reads
// files in order, for which their read-ahead does with fewer requests.
constexpr uint64_t kRowsToPrefetch = 128;

void check(const Dataset& dataset, const LoaderOptions& options) {
  DT_CHECK(options.batch > 0, "loader: batch ", options.batch, ": expected at least 1");
  DT_CHECK(options.ranks > 0 && options.rank >= 0 && options.rank < options.ranks, "loader: rank ", options.rank,
           " of ", options.ranks);
  DT_CHECK(options.workers >= 0 && options.workers <= kMaxThreads, "loader: ", options.workers,
           " workers, expected 0 to ", kMaxThreads);
  DT_CHECK(options.repeats > 0, "loader: ", options.repeats, " repeats per sample: expected at least 1");
  const int64_t rows = options.batch * options.ranks;
  DT_CHECK(options.group_batch >= 0 && options.group_batch % rows == 0, "loader: ", options.group_batch,
           " samples a step, expected a multiple of the ", rows, " of all ranks");
  DT_CHECK(options.slots >= 2, "loader: ", options.slots, " slots: at least 2, one to fill while the other is used");
  if (dataset.faults().size() > (options.skip_bad_records ? options.bad_record_budget : 0))
    throw Error(Fault::data, dataset.faults().front());
  if (dataset.size() == 0) throw Error(Fault::data, "the data set has no records");
  const std::vector<uint64_t>& begins = dataset.shard_begins();
  DT_CHECK(!begins.empty() && begins.front() == 0 && begins.back() == dataset.size() && std::ranges::is_sorted(begins),
           "loader: the data set's shards do not tile its ", dataset.size(), " records");
}

SampleOrder order_of(const Dataset& dataset, const LoaderOptions& options) {
  const auto rows = static_cast<uint64_t>(options.batch) * static_cast<uint64_t>(options.ranks);
  const bool whole_step = options.training && options.group_batch > 0;
  const auto repeats = static_cast<uint64_t>(options.training ? options.repeats : 1);
  return {dataset.size(),
          dataset.layouts().size(),
          [&](uint64_t record) { return dataset.layout_of(record); },
          {options.training, options.seed, whole_step ? static_cast<uint64_t>(options.group_batch) : rows, repeats}};
}

}  // namespace

struct Loader::State {
  // State of a batch row.
  struct Content {
    bool valid = false, damaged = false, oriented = false, turned = false;
  };
  // Batch that workers fill or the consumer holds.
  struct Slot {
    std::vector<Batch> batches;  // one per layout
    size_t layout = 0;           // layout in use
    std::vector<EncodedImage> encoded;
    std::vector<Content> rows;
    uint64_t number = UINT64_MAX;  // number of the batch, 0-based in this loader
    int64_t unfilled = 0;
    std::exception_ptr error;
    int64_t error_row = 0;

    Batch& batch() { return batches[layout]; }
  };
  struct Place {
    uint64_t batch;
    int64_t row;
  };

  State(std::shared_ptr<Dataset> source, const LoaderOptions& given)
      : dataset(std::move(source)),
        options(given),
        order(order_of(*dataset, options)),
        first_position(order.position_after(options.cursor)),
        can_prefetch(options.training && dataset->can_prefetch()) {
    stats.bad_records = stats.unreachable = dataset->faults().size();
    for (const std::string& fault : dataset->faults())
      if (stats.faults.size() < LoaderStats::kNamed) stats.faults.push_back(fault);
    const uint64_t left = order.end() - std::min(order.end(), first_position);
    if (!options.training) batches = (left + global_batch() - 1) / global_batch();
    make_slots();
    for (uint64_t row = 0; row < kRowsToPrefetch; ++row) prefetch(row);
    start_workers();
  }

  ~State() { stop_workers(); }

  uint64_t global_batch() const { return static_cast<uint64_t>(options.batch) * options.ranks; }
  Slot& slot_of(uint64_t number) { return slots[number % slots.size()]; }

  void make_slots() {
    const auto allocator = options.allocator ? options.allocator : std::make_shared<HostAllocator>();
    slots.resize(options.slots);
    for (Slot& slot : slots) {
      slot.rows.resize(static_cast<size_t>(options.batch));
      if (options.defer_decoding) slot.encoded.assign(options.batch, EncodedImage(allocator));
      for (const BatchLayout& layout : dataset->layouts()) {
        slot.batches.push_back(make_batch(layout, options.batch, allocator));
        slot.batches.back().encoded = slot.encoded;
      }
    }
  }

  std::unique_ptr<SampleReader> new_reader() const {
    std::unique_ptr<SampleReader> reader = dataset->reader();
    DT_CHECK(reader, "loader: the data set gave no reader: ", dataset->identity());
    return reader;
  }

  void start_workers() {
    const int count = options.workers ? options.workers : usable_cores();
    for (int i = 0; i < count; ++i) readers.push_back(new_reader());
    try {
      for (int i = 0; i < count; ++i) workers.emplace_back([this, i] { work(*readers[static_cast<size_t>(i)], i); });
    } catch (const std::system_error& e) {
      stop_workers();
      throw Error(Fault::resource, concat("loader: cannot start thread ", workers.size() + 1, " of ", count, ": ",
                                          e.what(), "; use fewer workers"));
    }
  }

  void stop_workers() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    room.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  // Reports an interval from `begin`; returns the current time if there is a listener.
  Clock::time_point report(LoaderWork::Kind kind, int thread, uint64_t sample, Clock::time_point begin) const {
    if (!options.report) return {};
    const Clock::time_point now = Clock::now();
    options.report({kind, thread, sample, begin, now});
    return now;
  }

  void work(SampleReader& reader, int number) {
    Clock::time_point since = Clock::now();
    while (const std::optional<Place> place = take()) {
      since = report(LoaderWork::Kind::room, number, 0, since);
      Slot& slot = slot_of(place->batch);
      std::exception_ptr error;
      try {
        prefetch(place->batch * static_cast<uint64_t>(options.batch) + static_cast<uint64_t>(place->row) +
                 kRowsToPrefetch);
        fill(reader, slot, *place, options.defer_decoding);
      } catch (...) {
        error = std::current_exception();
      }
      since = report(LoaderWork::Kind::fill, number, slot.batch().samples[static_cast<size_t>(place->row)], since);
      finish(slot, place->row, error);
    }
  }

  // Next row to fill, after waiting for a slot; nothing at the end.
  std::optional<Place> take() {
    std::unique_lock lock(mutex);
    auto has_room = [this] { return next_row.batch < released + slots.size(); };
    room.wait(lock, [&] { return stopping || next_row.batch >= batches || has_room(); });
    if (stopping || next_row.batch >= batches) return {};
    const Place taken = next_row;
    if (taken.row == 0) {
      Slot& slot = slot_of(taken.batch);
      slot.number = taken.batch;
      slot.layout = order.group_of_batch(first_position + taken.batch * global_batch());
      slot.unfilled = options.batch;
      slot.error = nullptr;
    }
    if (++next_row.row == options.batch) next_row = {taken.batch + 1, 0};
    return taken;
  }

  SampleKey key_of(Place place) const {
    return order
        .at(first_position + place.batch * global_batch() + static_cast<uint64_t>(options.rank) * options.batch +
            static_cast<uint64_t>(place.row))
        .key;
  }

  // Prefetches the sample of a row, counted from this loader's first one.
  void prefetch(uint64_t row) const {
    if (!can_prefetch) return;
    const auto rows = static_cast<uint64_t>(options.batch);
    if (row / rows >= batches) return;
    const uint64_t sample = key_of({row / rows, static_cast<int64_t>(row % rows)}).sample;
    if (sample < dataset->size()) dataset->prefetch(sample);
  }

  // Decodes a sample into its row. Lock-free: rows are disjoint, and finish() publishes them.
  void fill(SampleReader& reader, Slot& slot, Place place, bool defer) {
    Batch& batch = slot.batch();
    const auto row = static_cast<size_t>(place.row);
    const SampleKey key = key_of(place);
    const Row out(batch, place.row);
    EncodedImage* const later = defer ? &slot.encoded[row] : nullptr;
    if (!slot.encoded.empty()) slot.encoded[row].jpeg.clear();
    batch.samples[row] = key.sample;
    slot.rows[row] = {};
    if (key.sample < dataset->size()) slot.rows[row] = read_or_skip(reader, key, out, later, batch.samples[row]);
    if (!slot.rows[row].valid) out.pad();
    batch.row_valid[row] = slot.rows[row].valid;
  }

  // Reads `record`. If it is bad and may be skipped: in training reads the next good one of its shard and layout and
  // returns its number; in evaluation leaves the row empty, since no sample may count twice.
  Content read_or_skip(SampleReader& reader, const SampleKey& key, const Row& row, EncodedImage* later,
                       uint64_t& record) {
    for (;;) {
      try {
        std::optional<SampleNotes> deferred;
        if (later) deferred = reader.defer(record, key, row, *later);
        const SampleNotes notes = deferred ? *deferred : reader.read(record, key, row);
        const bool is_damaged = !notes.damage.empty();
        if (is_damaged) note_damaged(record, notes.damage);
        return {.valid = true, .damaged = is_damaged, .oriented = notes.oriented, .turned = notes.turned};
      } catch (const Error& error) {
        const std::string message = placed(error, record);
        if (error.fault() != Fault::data || !options.skip_bad_records) throw Error(error.fault(), message);
        note_bad(record, message);
      }
      if (!options.training) return {};
      const auto& begins = dataset->shard_begins();
      const auto shard_end = std::upper_bound(begins.begin(), begins.end(), record);
      const size_t layout = dataset->layout_of(record);
      do {
        if (++record == *shard_end) record = *(shard_end - 1);
      } while (dataset->layout_of(record) != layout);
      if (record == key.sample)
        throw Error(Fault::data, concat(dataset->locate(record).file, ": no good record to replace a bad one with"));
    }
  }

  // Message of `error` with the location; record framing errors already have one.
  std::string placed(const Error& error, uint64_t record) const {
    if (dynamic_cast<const RecordError*>(&error)) return error.what();
    return concat(dataset->locate(record).text(), ": ", error.what());
  }

  // Keeps the first few damaged images.
  void note_damaged(uint64_t record, const std::string& damage) {
    std::lock_guard lock(mutex);
    if (damaged.size() < LoaderStats::kNamed && damaged.insert(record).second)
      stats.damages.push_back(placed(Error(Fault::data, damage), record));
  }

  // Counts each bad record once.
  void note_bad(uint64_t record, const std::string& message) {
    std::lock_guard lock(mutex);
    if (!bad.insert(record).second) return;
    ++stats.bad_records;
    if (stats.faults.size() < LoaderStats::kNamed) stats.faults.push_back(message);
    if (stats.bad_records > options.bad_record_budget)
      throw Error(Fault::data,
                  concat("more bad records than the budget of ", options.bad_record_budget, ": ", message));
  }

  void finish(Slot& slot, int64_t row, const std::exception_ptr& error) {
    bool complete;
    {
      std::lock_guard lock(mutex);
      // Of several failing rows the first one's error is kept, independent of timing.
      if (error && (!slot.error || row < slot.error_row)) {
        slot.error = error;
        slot.error_row = row;
      }
      complete = --slot.unfilled == 0;
    }
    if (complete) filled.notify_one();
  }

  const Batch* next() {
    std::unique_lock lock(mutex);
    released = delivered;
    room.notify_all();
    if (delivered >= batches) return nullptr;
    Slot& slot = slot_of(delivered);
    const auto start = Clock::now();
    filled.wait(lock, [&] { return slot.number == delivered && slot.unfilled == 0; });
    stats.wait_seconds += std::chrono::duration<double>(Clock::now() - start).count();
    report(LoaderWork::Kind::next, -1, 0, start);
    if (slot.error) std::rethrow_exception(slot.error);
    ++delivered;
    Batch& batch = slot.batch();
    batch.cursor = order.consumed_at(first_position + delivered * global_batch());
    count_valid(batch);
    stats.records += batch.valid;
    for (const Content& row : slot.rows) count(row, 1);
    stats.deferred += std::ranges::count_if(slot.encoded, [](const EncodedImage& row) { return !row.jpeg.empty(); });
    return &batch;
  }

  // Adds a delivered row to the counts, or removes it if `times` is -1.
  void count(const Content& row, int64_t times) {
    stats.damaged_images += times * row.damaged;
    stats.oriented_images += times * row.oriented;
    stats.turned_images += times * row.turned;
  }

  static void count_valid(Batch& batch) { batch.valid = std::ranges::count(batch.row_valid, 1); }

  void decode(int64_t row) {
    Slot& slot = slot_of(delivered == 0 ? 0 : delivered - 1);
    DT_CHECK(
        delivered > 0 && row >= 0 && row < static_cast<int64_t>(slot.encoded.size()) && !slot.encoded[row].jpeg.empty(),
        "loader: row ", row, " of no batch, or was not left to a device");
    if (!late_reader) late_reader = new_reader();
    Content& content = slot.rows[static_cast<size_t>(row)];
    const Content deferred = content;
    fill(*late_reader, slot, {delivered - 1, row}, false);
    Batch& batch = slot.batch();
    const int64_t before = batch.valid;
    count_valid(batch);
    std::lock_guard lock(mutex);
    stats.records += batch.valid - before;
    count(deferred, -1);
    count(content, 1);
    --stats.deferred;
  }

  const std::shared_ptr<Dataset> dataset;
  const LoaderOptions options;
  const SampleOrder order;
  const uint64_t first_position;
  const bool can_prefetch;
  uint64_t batches = UINT64_MAX;  // total of this loader
  std::vector<Slot> slots;
  std::vector<std::unique_ptr<SampleReader>> readers;
  std::unique_ptr<SampleReader> late_reader;  // of the consumer, created on demand

  mutable std::mutex mutex;  // guards the members below, and the slots' counts and errors
  std::condition_variable room, filled;
  bool stopping = false;
  Place next_row{0, 0};
  uint64_t released = 0, delivered = 0;  // batches released by, and delivered to, the consumer
  std::set<uint64_t> bad, damaged;       // damaged: only the first few
  LoaderStats stats;

  std::vector<std::thread> workers;
};

Loader::Loader(std::shared_ptr<Dataset> dataset, const LoaderOptions& options) {
  DT_CHECK(dataset, "loader: no data set");
  check(*dataset, options);
  state_ = std::make_unique<State>(std::move(dataset), options);
}

Loader::~Loader() = default;

const Batch* Loader::next() { return state_->next(); }

void Loader::decode(int64_t row) { state_->decode(row); }

LoaderStats Loader::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->stats;
}

}  // namespace dtrain::data
