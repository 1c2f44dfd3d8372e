"""Runs as PID 1 of a container: `enter.py FILE`, in new mount, PID, UTS and IPC namespaces.

FILE is the JSON output of Container.describe(). The root file system is an overlay of the image's layers; the host's is
under /.host until all mounts are done. Uses only the standard library and imports nothing after the change of root.
"""

import ctypes
import json
import os
import sys

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC = 1, 2, 4, 8, 32, 4096, 16384
MNT_DETACH = 2
PIVOT_ROOT = 155  # system call number on x86-64
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
LAST_CAPABILITY = int(open("/proc/sys/kernel/cap_last_cap").read())
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source, target, kind=None, flags=0, options=""):
    arguments = [text.encode() if text else None for text in (source, target, kind)]
    check(libc.mount(*arguments, ctypes.c_ulong(flags), options.encode()), f"mount of {source} at {target}")


def bind(source, target, read_only=False):
    mount(source, target, flags=MS_BIND | MS_REC)
    if read_only:
        mount(None, target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)


def make_point(target, is_folder):
    """Creates a mount point in the container's layer if the image lacks it."""
    if os.path.exists(target):
        return
    os.makedirs(target if is_folder else os.path.dirname(target), exist_ok=True)
    if not is_folder:
        open(target, "w").close()


def change_root(wanted):
    scratch = wanted["scratch"]
    for name in ("upper", "work", "root"):
        os.makedirs(f"{scratch}/{name}", exist_ok=True)
    layers = ":".join(wanted["layers"])
    mount("overlay", f"{scratch}/root", "overlay", 0,
          f"lowerdir={layers},upperdir={scratch}/upper,workdir={scratch}/work")
    os.chdir(f"{scratch}/root")
    os.makedirs(".host", exist_ok=True)
    check(libc.syscall(PIVOT_ROOT, b".", b".host"), "pivot_root")
    os.chdir("/")


def mount_system(groups):
    for name in ("proc", "sys", "dev"):
        os.makedirs(f"/{name}", exist_ok=True)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    bind("/proc/sys", "/proc/sys", read_only=True)
    mount("sysfs", "/sys", "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    if groups:
        mount("tmpfs", "/sys/fs/cgroup", "tmpfs")
        for kind, folder in groups.items():
            os.mkdir(f"/sys/fs/cgroup/{kind}")
            bind("/.host" + folder, f"/sys/fs/cgroup/{kind}", read_only=True)
    mount("tmpfs", "/dev", "tmpfs", MS_NOSUID, "mode=755,size=64k")
    for device in DEVICES:
        open(f"/dev/{device}", "w").close()
        bind(f"/.host/dev/{device}", f"/dev/{device}")
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/pts")
    mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    os.symlink("pts/ptmx", "/dev/ptmx")
    os.mkdir("/dev/shm")
    mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=64m")


def drop_privileges(wanted):
    for capability in range(LAST_CAPABILITY + 1):
        if capability not in wanted["capabilities"]:
            check(libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), f"drop of capability {capability}")
    os.setgroups(wanted["groups"])
    os.setresgid(*[wanted["gid"]] * 3)
    os.setresuid(*[wanted["uid"]] * 3)
    if wanted["no_new_privileges"]:
        check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")


def main():
    with open(sys.argv[1]) as file:
        wanted = json.load(file)
    for folder in wanted["control_groups"].values():
        with open(f"{folder}/cgroup.procs", "w") as file:
            file.write("0")
    change_root(wanted)
    mount_system(wanted["control_groups"])
    for entry in wanted["mounts"]:
        source = "/.host" + entry["source"]
        make_point(entry["target"], os.path.isdir(source))
        bind(source, entry["target"], entry["read_only"])
    check(libc.umount2(b"/.host", MNT_DETACH), "umount of the host's root")
    os.rmdir("/.host")
    if wanted["read_only"]:
        mount(None, "/", flags=MS_BIND | MS_REMOUNT | MS_RDONLY)
    os.chdir(wanted["folder"])
    drop_privileges(wanted)
    os.umask(0o022)
    try:
        os.execvpe(wanted["command"][0], wanted["command"], wanted["environment"])
    except OSError as error:
        print(f"{wanted['command'][0]}: {error.strerror}", file=sys.stderr)
        os._exit(127 if error.errno == 2 else 126)


if __name__ == "__main__":
    main()
