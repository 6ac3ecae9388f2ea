"""What containers hold: init and sidecar containers, CPUs and memory, claims."""

from __future__ import annotations

from . import images, pods
from .bench import Bench
from .everything import assert_everything
from .expect import assert_table, assert_text, document
from .node import DRA_DRIVER
from .plugins import devices
from .sample import NOTHING
from .settings import KubeletSettings

GPU = "held.test/gpu"
GPUS = devices(["gpu-0", "gpu-1", "gpu-2", "gpu-10"], [0, 0, 1, 1])


def test_init_and_sidecar_containers(bench: Bench) -> None:
    """The sidecar takes what `first` leaves; `setup` of the other pod keeps a device to itself."""
    bench.plugin(GPU, GPUS, preferred=True)
    api, name = bench.plane.api(), bench.node.name
    pod = pods.manifest(
        f"team-{name}", name, {GPU: 2}, init_containers={"first": {GPU: 1}, "aside": {GPU: 1}}
    )
    pod["spec"]["initContainers"][1] |= {"restartPolicy": "Always", "image": images.PAUSE}
    pods.create(api, pod)
    pods.wait_phase(api, f"team-{name}", "Running")
    bench.node.create_pod(f"once-{name}", {}, init_containers={"setup": {GPU: 1}})
    assert_table(
        bench.dpctl("devices"),
        f"""
        DEVICE  RESOURCE       HEALTH   NUMA  STATE      HOLDER
        gpu-0   held.test/gpu  Healthy  0     Allocated  default/team-{name}/aside,default/team-{name}/first (init)
        gpu-1   held.test/gpu  Healthy  0     Reusable   default/once-{name}/setup (init)
        gpu-2   held.test/gpu  Healthy  1     Allocated  default/team-{name}/main
        gpu-10  held.test/gpu  Healthy  1     Allocated  default/team-{name}/main
        """,  # noqa: E501
    )
    assert_table(
        bench.dpctl("resources", "-o", "wide"),
        """
        RESOURCE       STATE  DEVICES  ALLOCATED  FREE  NUMA     PLUGIN    NODE  CHECKPOINT  KUBELET  REQUESTED  OWNER    NOTE
        held.test/gpu  Ready  4/4      4          0     0:2 1:2  gpu.sock  4/4   4           4        4          kubelet  *
        """,  # noqa: E501
    )
    assert_table(
        bench.dpctl("pods", "-o", "wide"),
        f"""
        NAMESPACE  POD          CONTAINER  RESOURCE       DEVICES       NUMA  CPUS  MEMORY  ALIGNED  KIND     REQUESTED  CDI  SOURCES
        default    once-{name}  setup      held.test/gpu  gpu-1         0     ?     ?       yes      init     1          -    checkpoint
        default    team-{name}  aside      held.test/gpu  gpu-0         0     -     -       yes      sidecar  1          -    checkpoint,podresources
        default    team-{name}  first      held.test/gpu  gpu-0         0     ?     ?       yes      init     1          -    checkpoint
        default    team-{name}  main       held.test/gpu  gpu-2,gpu-10  1     -     -       yes      app      2          -    checkpoint,podresources
        """,  # noqa: E501
    )


def test_cpus_and_memory(bench: Bench) -> None:
    """Two NUMA nodes of eight CPUs, CPU 0 reserved: what is exclusive, and is it together."""
    bench.node.configure(
        KubeletSettings(topology_policy="best-effort", cpu_policy="static", memory_policy="Static")
    )
    bench.plugin(GPU, GPUS, preferred=True)
    name = bench.node.name
    bench.node.create_pod(f"a-{name}", {GPU: 1, "cpu": 2, "memory": "1Gi"})
    bench.node.create_pod(f"b-{name}", {GPU: 3, "cpu": 2, "memory": "512Mi"})
    bench.node.create_pod(f"c-{name}", {"cpu": 1, "memory": "256Mi"})
    assert_table(
        bench.dpctl("pods"),
        f"""
        NAMESPACE  POD       CONTAINER  RESOURCE       DEVICES             NUMA  CPUS  MEMORY  ALIGNED
        default    a-{name}  main       held.test/gpu  gpu-0               0     1-2   1Gi     yes
        default    b-{name}  main       held.test/gpu  gpu-1,gpu-2,gpu-10  0,1   3-4   512Mi   no
        default    c-{name}  main       -              -                   -     5     256Mi   yes
        """,  # noqa: E501
    )
    found = document(bench.dpctl("pods", f"a-{name}", "-o", "json"))["items"]
    assert [(row["cpus"], row["memory"]) for row in found] == [
        ([1, 2], [{"type": "memory", "size": 1073741824, "numaNodes": [0]}])
    ]


def test_topology_affinity_error(bench: Bench) -> None:
    bench.node.configure(KubeletSettings(topology_policy="single-numa-node"))
    bench.plugin(GPU, GPUS, preferred=True)
    name = f"wide-{bench.node.name}"
    bench.node.create_pod(name, {GPU: 3}, phase="Failed")
    assert_table(
        bench.dpctl("pods", "--failed"),
        f"""
        NAMESPACE  POD     REASON                 REQUESTS         MESSAGE
        default    {name}  TopologyAffinityError  held.test/gpu=3  Pod was rejected: Resources cannot be allocated with Topology locality
        """,  # noqa: E501
    )


def test_claim_through_a_dra_driver(bench: Bench) -> None:
    api, node = bench.plane.api(), bench.node
    group = "/apis/resource.k8s.io/v1"
    classes, claims = f"{group}/deviceclasses", f"{group}/namespaces/default/resourceclaims"
    name, held = f"claimer-{node.name}", f"claim-{node.name}"
    made = f"test-{node.name}"  # classes are the whole cluster's, and so is their name
    request = {"name": "one", "exactly": {"deviceClassName": made}}
    selector = {"cel": {"expression": f'device.driver == "{DRA_DRIVER}"'}}
    try:
        driver = node.start_dra_driver()
        bench.daemons.append(driver)
        api.create(
            classes,
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": made},
                "spec": {"selectors": [selector]},
            },
        )
        api.create(
            claims,
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": held},
                "spec": {"devices": {"requests": [request]}},
            },
        )
        pod = pods.manifest(
            name, node.name, resourceClaims=[{"name": "c", "resourceClaimName": held}]
        )
        pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "c"}]}
        pods.create(api, pod)
        pods.wait_phase(api, name, "Running")
        claim = api.get(f"{claims}/{held}")
        given = claim["status"]["allocation"]["devices"]["results"][0]["device"]
        device = f"{DRA_DRIVER}/{node.name}/{given}"
        assert_table(
            bench.dpctl("pods"),
            f"""
            NAMESPACE  POD     CONTAINER  RESOURCE              DEVICES   NUMA  CPUS  MEMORY  ALIGNED
            default    {name}  main       claim:default/{held}  {device}  -     -     -       -
            """,  # noqa: E501
        )
        assert_table(
            bench.dpctl("plugins"),
            f"""
            ENDPOINT              RESOURCE      STATE    KUBELET  OPTIONS  PID/COMMAND               POD  AGE
            {DRA_DRIVER}-reg.sock  {DRA_DRIVER}  Serving  -        -        {driver.pid}/test-driver  -    *
            """,  # noqa: E501
        )
        rows = document(bench.dpctl("pods", name, "-o", "json"))["items"]
        assert [row["claim"] for row in rows] == [f"default/{held}"]
        assert rows[0]["cdiDevices"]
        # Claims are no extended resources, and their devices are known to no device plugin.
        for command in ("resources", "devices"):
            assert_text(bench.dpctl(command), "", NOTHING)
        assert_text(
            bench.dpctl("who", given),
            "",
            f"""
            error: no device "{given}" here
            hint: dpctl devices lists every device that is known
            """,
            code=1,
        )
        assert_everything(bench)
    finally:
        api.delete(f"/api/v1/namespaces/default/pods/{name}")
        pods.delete(api, name)
        api.delete(f"{claims}/{held}")
        api.delete(f"{classes}/{made}")


def test_resource_of_a_device_class(bench: Bench) -> None:
    """A name that a DeviceClass offers and no plugin serves is DRA's."""
    api, classes = bench.plane.api(), "/apis/resource.k8s.io/v1/deviceclasses"
    # Classes are the whole cluster's, where other tests run.
    made, resource = f"extended-{bench.node.name}", f"{bench.node.name}.test/gpu"
    api.create(
        classes,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": made},
            "spec": {"extendedResourceName": resource},
        },
    )
    try:
        bench.set_keys({resource: "1"})
        bench.node.wait_resource(resource, "1")
        assert_table(
            bench.dpctl("resources"),
            f"""
            RESOURCE      STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE
            {resource}  DRA    0/1      0          0     -     -       1/1
            """,
        )
        assert_text(bench.dpctl("resources", "--stale", "-q"), "", "No resources found")
    finally:
        api.delete(f"{classes}/{made}")
