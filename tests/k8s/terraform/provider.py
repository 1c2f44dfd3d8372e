"""A mock Terraform provider with the schemas of a real one: plans and applies all resources, with fake values for
computed attributes.

    provider.py NAME [ADDRESS --dev]

$SCHEMAS is the folder of schema.py's files. --dev runs one server for all commands of Terraform, and prints the value
of TF_REATTACH_PROVIDERS; ADDRESS is the provider's HOST/NAMESPACE/NAME.
"""

import functools
import json
import os
import pathlib
import sys

import msgpack
from tf import provider, runner
from tf.gen import tfplugin_pb2 as pb

NAME = sys.argv.pop(1)
ADDRESS = sys.argv.pop(1) if len(sys.argv) > 1 else NAME
[FILE] = pathlib.Path(os.environ["SCHEMAS"]).glob(f"{NAME}-*.json")
SCHEMAS = json.loads(FILE.read_text(encoding="utf-8"))
UNKNOWN = msgpack.ExtType(0, b"\0")
NESTING = {"list": pb.Schema.NestedBlock.LIST, "set": pb.Schema.NestedBlock.SET, "single": pb.Schema.NestedBlock.SINGLE}


def flatten(block):
    """Blocks of the helm provider are attributes since version 3; their content is not checked."""
    for name in block["blocks"]:
        block["attrs"][name] = {"type": "dynamic", "required": False, "optional": True, "computed": False}
    block["blocks"] = {}


def name_types(block):
    """Terraform forbids dynamic types inside sets, which incomplete packages imply for a few resources."""
    for name, one in block["blocks"].items():
        if one["nest"] == "set":
            block["blocks"][name] = json.loads(json.dumps(one).replace('"dynamic"', '"string"'))
        name_types(block["blocks"][name])


for one in (*SCHEMAS["resource"].values(), *SCHEMAS["data"].values()):
    name_types(one)
if NAME == "helm":
    for one in (SCHEMAS["provider"], *SCHEMAS["resource"].values(), *SCHEMAS["data"].values()):
        flatten(one)


def block_of(block):
    return pb.Schema.Block(
        attributes=[
            pb.Schema.Attribute(name=name, type=json.dumps(one["type"]).encode(), required=one["required"],
                                optional=one["optional"], computed=one["computed"] and not one["required"])
            for name, one in block["attrs"].items()],
        block_types=[
            pb.Schema.NestedBlock(type_name=name, block=block_of(one), nesting=NESTING[one["nest"]],
                                  min_items=0 if one["nest"] == "single" else one["min"],
                                  max_items=0 if one["nest"] == "single" else one["max"])
            for name, one in block["blocks"].items()])


def schema_of(block):
    return pb.Schema(version=0, block=block_of(block))


@functools.cache
def all_schemas():
    return pb.GetProviderSchema.Response(
        provider=schema_of(SCHEMAS["provider"]),
        resource_schemas={name: schema_of(one) for name, one in SCHEMAS["resource"].items()},
        data_source_schemas={name: schema_of(one) for name, one in SCHEMAS["data"].items()},
        provider_meta=pb.Schema(block=pb.Schema.Block()))


def decode(value):
    return msgpack.unpackb(value.msgpack, strict_map_key=False) if value.msgpack else json.loads(value.json)


def encode(value):
    return pb.DynamicValue(msgpack=msgpack.packb(value))


def each_block(block, value, function):
    """Calls function(object, name, type) for the computed attributes of an object and its nested blocks."""
    if not isinstance(value, dict):
        return value
    for name, one in block["attrs"].items():
        if one["computed"]:
            function(value, name, one["type"])
    for name, one in block["blocks"].items():
        for element in value.get(name) or []:
            each_block(one, element, function)
    return value


def fake_value(kind, name, owner):
    if isinstance(kind, str):
        text = f"arn:aws:stub:us-west-2:123456789012:{owner}/{name}" if name.endswith("arn") else f"{name}-stub"
        text = "c3R1Yg==" if name == "data" else text
        return {"string": text, "number": 0, "bool": False, "dynamic": None}[kind]
    if kind[0] == "object":
        return {member: fake_value(one, member, owner) for member, one in kind[1].items()}
    return {} if kind[0] == "map" else [fake_value(kind[1], name, owner)]


def set_unknown(value, name, _):
    if value.get(name) is None:
        value[name] = UNKNOWN


def set_fake_values(owner, only_unknown):
    def function(value, name, kind):
        if isinstance(value.get(name), msgpack.ExtType) or (not only_unknown and value.get(name) is None):
            value[name] = fake_value(kind, name, owner)
    return function


class Servicer(provider.ProviderServicer):
    def __init__(self, _):
        pass

    def GetMetadata(self, request, context):
        return pb.GetMetadata.Response(
            server_capabilities=pb.ServerCapabilities(get_provider_schema_optional=False),
            resources=[pb.GetMetadata.ResourceMetadata(type_name=name) for name in SCHEMAS["resource"]],
            data_sources=[pb.GetMetadata.DataSourceMetadata(type_name=name) for name in SCHEMAS["data"]])

    def GetProviderSchema(self, request, context):
        return all_schemas()

    def ValidateProviderConfig(self, request, context):
        return pb.ValidateProviderConfig.Response()

    def ValidateResourceConfig(self, request, context):
        return pb.ValidateResourceConfig.Response()

    def ValidateDataResourceConfig(self, request, context):
        return pb.ValidateDataResourceConfig.Response()

    def ConfigureProvider(self, request, context):
        return pb.ConfigureProvider.Response()

    def UpgradeResourceState(self, request, context):
        return pb.UpgradeResourceState.Response(upgraded_state=encode(json.loads(request.raw_state.json)))

    def ReadResource(self, request, context):
        return pb.ReadResource.Response(new_state=request.current_state)

    def PlanResourceChange(self, request, context):
        proposed, prior = decode(request.proposed_new_state), decode(request.prior_state)
        if proposed is not None and prior is None:
            each_block(SCHEMAS["resource"][request.type_name], proposed, set_unknown)
        return pb.PlanResourceChange.Response(planned_state=encode(proposed))

    def ApplyResourceChange(self, request, context):
        planned = decode(request.planned_state)
        each_block(SCHEMAS["resource"][request.type_name], planned, set_fake_values(request.type_name, True))
        return pb.ApplyResourceChange.Response(new_state=encode(planned))

    def ReadDataSource(self, request, context):
        state = each_block(SCHEMAS["data"][request.type_name], decode(request.config),
                           set_fake_values(request.type_name, False))
        return pb.ReadDataSource.Response(state=encode(state))

    def GetFunctions(self, request, context):
        return pb.GetFunctions.Response()

    def StopProvider(self, request, context):
        return pb.StopProvider.Response()


class App:
    def full_name(self):
        return ADDRESS


provider.ProviderServicer = Servicer
runner.run_provider(App())
