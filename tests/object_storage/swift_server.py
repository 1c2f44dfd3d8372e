"""OpenStack Swift with its S3 API: a proxy, an account, a container and an object server in one process.

    swift_server.py FOLDER ACCESS_KEY SECRET_KEY REGION DOMAIN SECONDS

Stores below FOLDER, prints the port of the S3 API on 127.0.0.1, and serves until standard input is closed. ACCESS_KEY is
ACCOUNT:USER. Buckets may be in the host name, before .DOMAIN. The server's clock is ahead by SECONDS. s3_server.py starts
it with the packages of swift.sh.
"""

import eventlet

eventlet.monkey_patch()

import logging  # noqa: E402
import os  # noqa: E402
import pathlib  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

if __name__ == "__main__":  # once: Swift imports this module, too
    now, ahead = time.time, int(sys.argv[-1])
    time.time = lambda: now() + ahead

from eventlet import wsgi  # noqa: E402
from swift.common import utils  # noqa: E402

os.fsync = os.fdatasync = lambda _: None  # the data of tests need not survive a power failure
SERVERS = ("account", "container", "object")
SERVER = """[DEFAULT]
swift_dir = {folder}
devices = {folder}
mount_check = false
log_address = {folder}/no-log
log_custom_handlers = swift_server.log_to_file
workers = 0
{defaults}
[pipeline:main]
pipeline = {pipeline}
[app:{name}-server]
use = egg:swift#{name}
allow_account_management = true
account_autocreate = true
{filters}"""
PIPELINE = ("catch_errors", "gatekeeper", "listing_formats", "bulk", "s3api", "tempauth", "copy", "slo", "dlo",
            "proxy-server")


class Cache:
    """Stands in for memcached, which Swift only needs as a cache. Nothing expires."""

    def __init__(self):
        self.values = {}

    def get(self, key, *_, **__):
        return self.values.get(key)

    def set(self, key, value, *_, **__):
        self.values[key] = value

    def delete(self, key, *_, **__):
        self.values.pop(key, None)


def log_to_file(conf, *details):
    details[-2].addHandler(logging.FileHandler(f"{conf['swift_dir']}/log"))


def write_rings(folder, ports):
    """A ring of one device for each server: single replicas."""
    from swift.common.ring import RingBuilder
    for name, port in ports.items():
        builder = RingBuilder(1, 1, 1)
        builder.add_dev({"id": 0, "region": 1, "zone": 1, "weight": 1, "ip": "127.0.0.1", "port": port, "device": "disk"})
        builder.rebalance(seed=1)
        builder.get_ring().save(str(folder / f"{name}.ring.gz"))


def write_configuration(folder, access_key, secret_key, region, domain):
    account, user = access_key.split(":")
    (folder / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = tests\n"
                                       "[storage-policy:0]\nname = single\ndefault = yes\n")
    for name in SERVERS:
        (folder / f"{name}.conf").write_text(SERVER.format(folder=folder, name=name, pipeline=f"{name}-server",
                                                           defaults="", filters=""))
    options = {"s3api": f"location = {region}\nstorage_domain = {domain}\n",
               "tempauth": f"user_{account}_{user} = {secret_key} .admin\n"}
    filters = "".join(f"[filter:{name}]\nuse = egg:swift#{name}\n{options.get(name, '')}" for name in PIPELINE[:-1])
    (folder / "proxy.conf").write_text(SERVER.format(folder=folder, name="proxy", pipeline=" ".join(PIPELINE),
                                                     defaults="", filters=filters))


def serve(folder, name, socket):
    from swift.common.wsgi import SwiftHttpProtocol, loadapp
    app = loadapp(str(folder / f"{name}.conf"))
    cache = Cache()

    def cached(environment, respond):
        environment["swift.cache"] = cache
        return app(environment, respond)
    eventlet.spawn(wsgi.server, socket, cached, logging.getLogger("wsgi"), protocol=SwiftHttpProtocol, log_output=False)


def main(place, *settings):
    folder = pathlib.Path(place).resolve()
    for name in ("disk", "no-log"):
        (folder / name).mkdir()
    write_configuration(folder, *settings[:4])
    utils.set_swift_dir(str(folder))
    sockets = {name: eventlet.listen(("127.0.0.1", 0)) for name in (*SERVERS, "proxy")}
    write_rings(folder, {name: sockets[name].getsockname()[1] for name in SERVERS})
    for name, socket in sockets.items():
        serve(folder, name, socket)
    print(sockets["proxy"].getsockname()[1], flush=True)
    eventlet.tpool.execute(sys.stdin.read)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
