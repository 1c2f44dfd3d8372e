// Compares libdtrain/distributed/open_mpi.h with mpi.h of the installed Open MPI, when it is compiled.
#include <type_traits>

#include <mpi.h>

#include "libdtrain/distributed/open_mpi.h"

namespace dtrain::mpi {
namespace {

static_assert(sizeof(Status) == sizeof(MPI_Status) && alignof(Status) == alignof(MPI_Status));
static_assert(offsetof(Status, source) == offsetof(MPI_Status, MPI_SOURCE));
static_assert(kSuccess == MPI_SUCCESS && kAnySource == MPI_ANY_SOURCE && kThreadFunneled == MPI_THREAD_FUNNELED);
static_assert(kCommTypeShared == MPI_COMM_TYPE_SHARED && kMaxErrorString == MPI_MAX_ERROR_STRING);
static_assert(kMaxLibraryVersionString == MPI_MAX_LIBRARY_VERSION_STRING);

// Types of parameters, with ours in place of MPI's.
template <class Type>
struct Ours {
  using type = Type;
};
template <class Type>
struct Ours<Type*> {
  using type = typename Ours<Type>::type*;
};
template <class Type>
struct Ours<const Type> {
  using type = const typename Ours<Type>::type;
};
template <class Result, class... Parameters>
struct Ours<Result(Parameters...)> {
  using type = Result(typename Ours<Parameters>::type...);
};
template <>
struct Ours<ompi_communicator_t> {
  using type = CommObject;
};
template <>
struct Ours<ompi_datatype_t> {
  using type = DatatypeObject;
};
template <>
struct Ours<ompi_errhandler_t> {
  using type = ErrhandlerObject;
};
template <>
struct Ours<ompi_info_t> {
  using type = InfoObject;
};
template <>
struct Ours<ompi_message_t> {
  using type = MessageObject;
};
template <>
struct Ours<ompi_op_t> {
  using type = OpObject;
};
template <>
struct Ours<ompi_request_t> {
  using type = RequestObject;
};
template <>
struct Ours<ompi_status_public_t> {
  using type = Status;
};

template <class Function, class Loaded>
constexpr bool kSame = std::is_same_v<typename Ours<Function>::type*, Loaded>;

static_assert(kSame<decltype(MPI_Init_thread), decltype(OpenMpi::init_thread)>);
static_assert(kSame<decltype(MPI_Initialized), decltype(OpenMpi::initialized)>);
static_assert(kSame<decltype(MPI_Finalize), decltype(OpenMpi::finalize)>);
static_assert(kSame<decltype(MPI_Get_library_version), decltype(OpenMpi::get_library_version)>);
static_assert(kSame<decltype(MPI_Error_string), decltype(OpenMpi::error_string)>);
static_assert(kSame<decltype(MPI_Comm_set_errhandler), decltype(OpenMpi::comm_set_errhandler)>);
static_assert(kSame<decltype(MPI_Comm_rank), decltype(OpenMpi::comm_rank)>);
static_assert(kSame<decltype(MPI_Comm_size), decltype(OpenMpi::comm_size)>);
static_assert(kSame<decltype(MPI_Comm_dup), decltype(OpenMpi::comm_dup)>);
static_assert(kSame<decltype(MPI_Comm_free), decltype(OpenMpi::comm_free)>);
static_assert(kSame<decltype(MPI_Comm_split_type), decltype(OpenMpi::comm_split_type)>);
static_assert(kSame<decltype(MPI_Allreduce), decltype(OpenMpi::allreduce)>);
static_assert(kSame<decltype(MPI_Allgather), decltype(OpenMpi::allgather)>);
static_assert(kSame<decltype(MPI_Isend), decltype(OpenMpi::isend)>);
static_assert(kSame<decltype(MPI_Irecv), decltype(OpenMpi::irecv)>);
static_assert(kSame<decltype(MPI_Test), decltype(OpenMpi::test)>);
static_assert(kSame<decltype(MPI_Improbe), decltype(OpenMpi::improbe)>);
static_assert(kSame<decltype(MPI_Mrecv), decltype(OpenMpi::mrecv)>);
static_assert(kSame<decltype(MPI_Get_count), decltype(OpenMpi::get_count)>);

}  // namespace
}  // namespace dtrain::mpi
