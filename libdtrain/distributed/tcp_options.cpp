// Rendezvous address from launchers' variables, and access control.
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dtrain/core/error.h"
#include "dtrain/distributed/group.h"

namespace dtrain {
namespace {

struct Setting {
  std::string name, value;
  explicit operator bool() const { return !name.empty(); }
};

// First of these variables that is set and not empty.
Setting first_set(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* text = environment(name); text != nullptr && *text != '\0') return {name, text};
  return {};
}

// First host of a SLURM list such as "node[003-007,010]-ib,gpu1".
std::string first_host(const std::string& list) {
  std::string host;
  for (size_t at = 0; at < list.size() && list[at] != ',';) {
    if (list[at] != '[') {
      host += list[at++];
      continue;
    }
    const size_t end = list.find_first_of(",-]", at + 1), close = list.find(']', at);
    DT_CHECK(close != std::string::npos, "SLURM's list of hosts ", list, " has a [ without a ]");
    host += list.substr(at + 1, end - at - 1);
    at = close + 1;
  }
  return host;
}

int port_in(const Setting& setting) {
  int port = 0;
  const char* end = setting.value.data() + setting.value.size();
  const auto [stop, error] = std::from_chars(setting.value.data(), end, port);
  DT_CHECK(error == std::errc{} && stop == end && port > 0 && port < 65536, setting.name, "=", setting.value,
           ": expected a port, 1 to 65535");
  return port;
}

// First line of a file that only its owner may read. Throws Error(Fault::config) for other files.
std::string secret_in(const std::string& path) {
  constexpr size_t kMost = 4096;
  // Non-blocking: does not hang on a FIFO.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  DT_CHECK(file >= 0, "DTRAIN_JOB_SECRET_FILE=", path, ": ", strerror(errno));
  std::string text(kMost, '\0');
  struct stat status {};
  const bool known = fstat(file, &status) == 0;
  const ssize_t bytes = known && S_ISREG(status.st_mode) ? read(file, text.data(), text.size()) : -1;
  close(file);
  DT_CHECK(known && S_ISREG(status.st_mode) && bytes >= 0, "DTRAIN_JOB_SECRET_FILE=", path, ": not a file to read");
  DT_CHECK((status.st_mode & 077) == 0, "DTRAIN_JOB_SECRET_FILE=", path,
           ": others than its owner may read or write it; say chmod 600");
  text.resize(static_cast<size_t>(bytes));
  return text.substr(0, text.find_first_of("\r\n"));
}

// Distinct per job on a host, below the ephemeral range.
int port_of_job(const std::string& job) {
  return 20000 + static_cast<int>(std::strtoul(job.c_str(), nullptr, 10) % 10000);
}

}  // namespace

TcpOptions tcp_options_from(const Environment& environment) {
  const auto setting = [&](std::initializer_list<const char*> names) { return first_set(environment, names); };
  const LauncherRank launched = launcher_rank(environment);
  DT_CHECK(launched.rank >= 0,
           "several ranks without MPI: no launcher says which one this is; set DTRAIN_RANK and "
           "DTRAIN_SIZE, or start it with mpirun or srun");
  TcpOptions tcp{.rank = launched.rank, .size = launched.size};
  DT_CHECK(tcp.rank < tcp.size, launched.source, "=", tcp.rank, " of ", tcp.size, " ranks");
  const Setting address = setting({"DTRAIN_MASTER_ADDR", "MASTER_ADDR"});
  const Setting port = setting({"DTRAIN_MASTER_PORT", "MASTER_PORT"});
  const Setting hosts = setting({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}), slurm_job = setting({"SLURM_JOB_ID"});
  // Within one host over loopback, which needs no secret.
  const bool one_host = setting({"SLURM_STEP_NUM_NODES"}).value == "1";
  tcp.address = address ? address.value : one_host ? "127.0.0.1" : first_host(hosts.value);
  DT_CHECK(!tcp.address.empty(), "several ranks without MPI: where is rank 0? Set DTRAIN_MASTER_ADDR to its host");
  DT_CHECK(port || slurm_job, "several ranks without MPI: set DTRAIN_MASTER_PORT to a free port of ", tcp.address);
  tcp.port = port ? port_in(port) : port_of_job(slurm_job.value);
  if (port.name == "MASTER_PORT" && setting({"TORCHELASTIC_USE_AGENT_STORE"}).value == "True") ++tcp.port;
  tcp.job = setting({"DTRAIN_JOB_ID", "SLURM_JOB_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID",
                     "TORCHELASTIC_RUN_ID"})
                .value;
  protect(tcp, environment);
  return tcp;
}

void protect(TcpOptions& tcp, const Environment& environment) {
  constexpr size_t kLeast = 16;
  const Setting secret = first_set(environment, {"DTRAIN_JOB_SECRET"});
  const Setting file = first_set(environment, {"DTRAIN_JOB_SECRET_FILE"});
  const Setting trust = first_set(environment, {"DTRAIN_TRUST_NETWORK"});
  DT_CHECK(!secret || !file, "DTRAIN_JOB_SECRET and DTRAIN_JOB_SECRET_FILE are both set; set only one");
  tcp.secret = file ? secret_in(file.value) : secret.value;
  const Setting& source = file ? file : secret;
  DT_CHECK(!source || tcp.secret.size() >= kLeast, source.name, ": a secret of ", tcp.secret.size(),
           " characters can be guessed; expected at least ", kLeast, ", such as `openssl rand -hex 32` prints");
  DT_CHECK(!trust || trust.value == "0" || trust.value == "1", "DTRAIN_TRUST_NETWORK=", trust.value,
           ": expected 0 or 1");
  tcp.trust_network = trust.value == "1";
  tcp.bind_address = first_set(environment, {"DTRAIN_BIND_ADDR"}).value;
}

}  // namespace dtrain
