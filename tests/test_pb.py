"""The wire contract: what is generated, and that the generator still gives it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path

import pytest
from google.protobuf.descriptor import FieldDescriptor, FileDescriptor

ROOT = Path(__file__).parent.parent
VERSION = "1.72.1"

DEVICE_PLUGIN = """
service Registration
  Register RegisterRequest Empty
service DevicePlugin
  GetDevicePluginOptions Empty DevicePluginOptions
  ListAndWatch Empty stream ListAndWatchResponse
  GetPreferredAllocation PreferredAllocationRequest PreferredAllocationResponse
  Allocate AllocateRequest AllocateResponse
  PreStartContainer PreStartContainerRequest PreStartContainerResponse
DevicePluginOptions
  pre_start_required 1 bool
  get_preferred_allocation_available 2 bool
RegisterRequest
  version 1 string
  endpoint 2 string
  resource_name 3 string
  options 4 DevicePluginOptions
Empty
ListAndWatchResponse
  devices 1 repeated Device
TopologyInfo
  nodes 1 repeated NUMANode
NUMANode
  ID 1 int64
Device
  ID 1 string
  health 2 string
  topology 3 TopologyInfo
PreStartContainerRequest
  devices_ids 1 repeated string
PreStartContainerResponse
PreferredAllocationRequest
  container_requests 1 repeated ContainerPreferredAllocationRequest
ContainerPreferredAllocationRequest
  available_deviceIDs 1 repeated string
  must_include_deviceIDs 2 repeated string
  allocation_size 3 int32
PreferredAllocationResponse
  container_responses 1 repeated ContainerPreferredAllocationResponse
ContainerPreferredAllocationResponse
  deviceIDs 1 repeated string
AllocateRequest
  container_requests 1 repeated ContainerAllocateRequest
ContainerAllocateRequest
  devices_ids 1 repeated string
CDIDevice
  name 1 string
AllocateResponse
  container_responses 1 repeated ContainerAllocateResponse
ContainerAllocateResponse
  envs 1 map<string,string>
  mounts 2 repeated Mount
  devices 3 repeated DeviceSpec
  annotations 4 map<string,string>
  cdi_devices 5 repeated CDIDevice
Mount
  container_path 1 string
  host_path 2 string
  read_only 3 bool
DeviceSpec
  container_path 1 string
  host_path 2 string
  permissions 3 string
"""

POD_RESOURCES = """
service PodResourcesLister
  List ListPodResourcesRequest ListPodResourcesResponse
  GetAllocatableResources AllocatableResourcesRequest AllocatableResourcesResponse
  Get GetPodResourcesRequest GetPodResourcesResponse
AllocatableResourcesRequest
AllocatableResourcesResponse
  devices 1 repeated ContainerDevices
  cpu_ids 2 repeated int64
  memory 3 repeated ContainerMemory
ListPodResourcesRequest
ListPodResourcesResponse
  pod_resources 1 repeated PodResources
PodResources
  name 1 string
  namespace 2 string
  containers 3 repeated ContainerResources
  cpu_ids 4 repeated int64
  memory 5 repeated ContainerMemory
ContainerResources
  name 1 string
  devices 2 repeated ContainerDevices
  cpu_ids 3 repeated int64
  memory 4 repeated ContainerMemory
  dynamic_resources 5 repeated DynamicResource
ContainerMemory
  memory_type 1 string
  size 2 uint64
  topology 3 TopologyInfo
ContainerDevices
  resource_name 1 string
  device_ids 2 repeated string
  topology 3 TopologyInfo
TopologyInfo
  nodes 1 repeated NUMANode
NUMANode
  ID 1 int64
DynamicResource
  class_name 1 string
  claim_name 2 string
  claim_namespace 3 string
  claim_resources 4 repeated ClaimResource
ClaimResource
  cdi_devices 1 repeated CDIDevice
  driver_name 2 string
  pool_name 3 string
  device_name 4 string
  share_id 5 optional string
CDIDevice
  name 1 string
GetPodResourcesRequest
  pod_name 1 string
  pod_namespace 2 string
GetPodResourcesResponse
  pod_resources 1 PodResources
"""

POD_RESOURCES_ALPHA = """
service PodResourcesLister
  List ListPodResourcesRequest ListPodResourcesResponse
ListPodResourcesRequest
ListPodResourcesResponse
  pod_resources 1 repeated PodResources
PodResources
  name 1 string
  namespace 2 string
  containers 3 repeated ContainerResources
ContainerResources
  name 1 string
  devices 2 repeated ContainerDevices
ContainerDevices
  resource_name 1 string
  device_ids 2 repeated string
"""

PLUGIN_REGISTRATION = """
service Registration
  GetInfo InfoRequest PluginInfo
  NotifyRegistrationStatus RegistrationStatus RegistrationStatusResponse
PluginInfo
  type 1 string
  name 2 string
  endpoint 3 string
  supported_versions 4 repeated string
RegistrationStatus
  plugin_registered 1 bool
  error 2 string
RegistrationStatusResponse
InfoRequest
"""

PODS = """
service Pods
  ListPods ListPodsRequest ListPodsResponse
  GetPod GetPodRequest GetPodResponse
  WatchPods WatchPodsRequest stream WatchPodsEvent
enum EventType
  UNSPECIFIED 0
  ADDED 1
  MODIFIED 2
  DELETED 3
  INITIAL_SYNC_COMPLETE 4
ListPodsRequest
ListPodsResponse
  pods 1 repeated bytes
GetPodRequest
  podUID 1 string
GetPodResponse
  pod 1 bytes
WatchPodsRequest
WatchPodsEvent
  type 1 EventType
  pod 2 bytes
"""

DRA_HEALTH = """
service DRAResourceHealth
  NodeWatchResources NodeWatchResourcesRequest stream NodeWatchResourcesResponse
enum HealthStatus
  UNKNOWN 0
  HEALTHY 1
  UNHEALTHY 2
NodeWatchResourcesRequest
NodeWatchResourcesResponse
  devices 1 repeated DeviceHealth
DeviceIdentifier
  pool_name 1 string
  device_name 2 string
DeviceHealth
  device 1 DeviceIdentifier
  health 2 HealthStatus
  last_updated_time 3 int64
  health_check_timeout_seconds 4 int64
  message 5 string
"""

TABLES = [
    ("deviceplugin.v1beta1.deviceplugin", "v1beta1", DEVICE_PLUGIN),
    ("podresources.v1.podresources", "v1", POD_RESOURCES),
    ("podresources.v1alpha1.podresources", "v1alpha1", POD_RESOURCES_ALPHA),
    ("pluginregistration.v1.pluginregistration", "pluginregistration", PLUGIN_REGISTRATION),
    ("pods.v1alpha1.pods", "v1alpha1", PODS),
    ("dra_health.v1.dra_health", "v1", DRA_HEALTH),
    ("dra_health.v1alpha1.dra_health", "v1alpha1", DRA_HEALTH),
]


@pytest.mark.parametrize(("module", "package", "table"), TABLES, ids=[t[0] for t in TABLES])
def test_descriptors_are_the_wire_tables(module, package, table):
    file = import_module(f"dpctl.pb.{module}_pb2").DESCRIPTOR
    assert file.package == package
    assert described(file) == blocks(table)


def test_every_schema_is_in_the_tables():
    schemas = {
        f"{p.parent.parent.name}.{p.parent.name}.{p.stem}" for p in ROOT.glob("proto/*/*/*.proto")
    }
    assert schemas == {module for module, _, _ in TABLES}


def blocks(table: str) -> dict[str, list[str]]:
    """Headings to their lines. Fields stand in the order of their numbers."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in table.strip().splitlines():
        if line.startswith(" "):
            found[heading].append(line.strip())
        else:
            heading = line
            found[heading] = []
    return found


def described(file: FileDescriptor) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for service in file.services_by_name.values():
        found[f"service {service.name}"] = [
            f"{m.name} {m.input_type.name} {'stream ' if m.server_streaming else ''}"
            f"{m.output_type.name}"
            for m in service.methods
        ]
        assert not any(m.client_streaming for m in service.methods)
    for enum in file.enum_types_by_name.values():
        found[f"enum {enum.name}"] = [f"{value.name} {value.number}" for value in enum.values]
    for message in file.message_types_by_name.values():
        assert message.full_name == f"{file.package}.{message.name}"
        fields = sorted(message.fields, key=lambda f: f.number)
        found[message.name] = [f"{f.name} {f.number} {type_of(f)}" for f in fields]
    return found


SCALARS = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_UINT64: "uint64",
}


def type_of(field: FieldDescriptor) -> str:
    if field.enum_type is not None:
        return field.enum_type.name
    if field.message_type is None:
        name = SCALARS[field.type]
        if field.is_repeated:
            return f"repeated {name}"
        return f"optional {name}" if field.has_presence else name
    if field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields
        return f"map<{type_of(key)},{type_of(value)}>"
    return f"repeated {field.message_type.name}" if field.is_repeated else field.message_type.name


# -- the generator ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def generator() -> str:
    """A Python with the pinned grpcio-tools: this one, or the one `make gen` uses (made if need
    be)."""
    try:
        if metadata.version("grpcio-tools") == VERSION:
            return sys.executable
    except metadata.PackageNotFoundError:
        pass
    python = ROOT / ".venv-gen" / "bin" / "python"
    if not has_tools(python):
        subprocess.run([sys.executable, "-m", "venv", ROOT / ".venv-gen"], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", f"grpcio-tools=={VERSION}"]
        subprocess.run(install, check=True)
    return str(python)


def has_tools(python: Path) -> bool:
    ask = f"from importlib.metadata import version; assert version('grpcio-tools') == '{VERSION}'"
    return (
        python.exists() and subprocess.run([python, "-c", ask], capture_output=True).returncode == 0
    )


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*.py*")
        if path.suffix in (".py", ".pyi")
    }


def test_regenerated_code_is_the_committed_one(generator, tmp_path):
    stale = tmp_path / "dpctl" / "pb" / "gone" / "v1" / "gone_pb2.py"
    stale.parent.mkdir(parents=True)
    stale.write_text("# from a schema that is no more")
    done = subprocess.run(
        [generator, ROOT / "proto" / "generate.py", tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    made = contents(tmp_path / "dpctl" / "pb")
    committed = contents(ROOT / "dpctl" / "pb")
    assert made.keys() == committed.keys()
    assert [name for name in made if made[name] != committed[name]] == [], "run `make gen`"
    assert len(done.stdout.splitlines()) == 3 * len(TABLES)


def test_another_version_is_refused_with_the_way_to_the_right_one(tmp_path):
    # An interpreter without anything installed has none at all, which is another version, too.
    done = subprocess.run(
        [sys.executable, "-I", "-S", ROOT / "proto" / "generate.py", tmp_path],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert f"needs grpcio-tools {VERSION}" in done.stderr
    assert "make gen" in done.stderr
    assert list(tmp_path.iterdir()) == []
