"""dpctl with little: a node's credentials or nobody's, no API server, another network."""

from __future__ import annotations

from .bench import Bench
from .expect import assert_table, assert_text, document
from .plane import NO_RIGHTS
from .plugins import devices

GPU = "seen.test/gpu"
GPUS = devices(["gpu-0", "gpu-1"], [0, 1])


def start(bench: Bench) -> str:
    """Two devices, one of them held."""
    bench.plugin(GPU, GPUS, preferred=True)
    name = f"holder-{bench.node.name}"
    bench.node.create_pod(name, {GPU: 1})
    return name


def server_of(bench: Bench) -> str:
    """The API server as the node's kubeconfig files name it."""
    return f"https://127.0.0.1:{bench.node.gate.port}"


READY = """
RESOURCE       STATE  DEVICES  ALLOCATED  FREE  NUMA     PLUGIN    NODE
seen.test/gpu  Ready  2/2      1          1     0:1 1:1  gpu.sock  2/2
"""


def test_node_credentials(bench: Bench) -> None:
    """Found by itself on the kubelet's command line. DeviceClasses are not for nodes: a note."""
    pod = start(bench)
    assert_table(bench.started("resources", user=None), READY)
    assert_table(bench.dpctl("resources", "--strict", user=None), READY)
    assert_table(
        bench.dpctl("devices", user=None),
        f"""
        DEVICE  RESOURCE       HEALTH   NUMA  STATE      HOLDER
        gpu-0   seen.test/gpu  Healthy  0     Allocated  default/{pod}/main
        gpu-1   seen.test/gpu  Healthy  1     Free       -
        """,
    )
    assert_text(bench.dpctl("pods", "--failed", user=None), "", "No resources found")
    sources = document(bench.dpctl("resources", "-o", "json", user=None))["sources"]
    assert {s["name"] for s in sources if s["state"] != "read"} == {"deviceclasses"}
    verbose = bench.dpctl("resources", "-v", user=None)
    assert verbose.code == 0
    assert "deviceclasses failed" in verbose.stderr
    assert "forbidden" in verbose.stderr


def test_without_rights(bench: Bench) -> None:
    pod, node, server = start(bench), bench.node.name, server_of(bench)
    found = bench.started("resources", user=NO_RIGHTS)
    assert_table(
        found,
        """
        RESOURCE       STATE    DEVICES  ALLOCATED  FREE  NUMA     PLUGIN    NODE
        seen.test/gpu  Unknown  2/?      1          1     0:1 1:1  gpu.sock  ?
        """,
        f"""
        warning: node not read: {server} refuses /api/v1/nodes/{node}; it takes the right to get nodes {node}: nodes "{node}" is forbidden: User "nobody" cannot get resource "nodes" in API group "" at the cluster scope
        hint: have this rule added to the user's ClusterRole: {{apiGroups: [""], resources: ["nodes"], verbs: ["get"]}}
        warning: pods not read: {server} refuses /api/v1/pods; it takes the right to list pods: pods is forbidden: User "nobody" cannot list resource "pods" in API group "" at the cluster scope
        hint: have this rule added to the user's ClusterRole: {{apiGroups: [""], resources: ["pods"], verbs: ["list"]}}
        """,  # noqa: E501
    )
    assert bench.dpctl("resources", "--strict", user=NO_RIGHTS).code == 5
    failed = bench.dpctl("pods", "--failed", user=NO_RIGHTS)
    assert (failed.code, failed.stdout) == (5, ""), failed
    # What needs no API server is not disturbed by it.
    assert_table(
        bench.dpctl("pods", user=NO_RIGHTS),
        f"""
        NAMESPACE  POD    CONTAINER  RESOURCE       DEVICES  NUMA  CPUS  MEMORY  ALIGNED
        default    {pod}  main       seen.test/gpu  gpu-0    0     -     -       yes
        """,
    )


def test_api_server_that_does_not_answer(bench: Bench) -> None:
    pod, server, config = start(bench), server_of(bench), bench.node.kubeconfig_of()
    with bench.node.gate.shut():
        found = bench.started("resources", "--request-timeout", "1")
        failed = bench.dpctl("pods", "--failed", "--request-timeout", "1")
        strict = bench.dpctl("resources", "--request-timeout", "1", "--strict")
        local = bench.dpctl("pods")
        who = bench.dpctl("who", "gpu-0")
        plugins = bench.dpctl("plugins", "-q")
    with bench.node.gate.closed():
        refused = bench.dpctl("resources")
    table = """
        RESOURCE       STATE    DEVICES  ALLOCATED  FREE  NUMA     PLUGIN    NODE
        seen.test/gpu  Unknown  2/?      1          1     0:1 1:1  gpu.sock  ?
        """
    assert_table(
        found,
        table,
        f"""
        warning: node, pods not read: the API server at {server} did not answer within 1 s
        hint: check the server of kubeconfig {config} (environment KUBECONFIG), or raise --request-timeout
        """,  # noqa: E501
    )
    assert_table(
        refused,
        table,
        f"""
        warning: node, pods not read: the API server at {server} cannot be reached: Connection refused
        hint: check the server address in kubeconfig {config} (environment KUBECONFIG), and that the server runs there: curl -k {server}/livez
        """,  # noqa: E501
    )
    assert (failed.code, failed.stdout) == (3, ""), failed
    assert strict.code == 3, strict
    assert_table(
        local,
        f"""
        NAMESPACE  POD    CONTAINER  RESOURCE       DEVICES  NUMA  CPUS  MEMORY  ALIGNED
        default    {pod}  main       seen.test/gpu  gpu-0    0     -     -       yes
        """,
    )
    assert_table(
        who,
        f"""
        DEVICE  RESOURCE       WHAT       NAMESPACE  POD    CONTAINER  STATE   PID  COMMAND
        gpu-0   seen.test/gpu  container  default    {pod}  main       active  -    -
        """,
    )
    assert_text(plugins, "gpu.sock")


def test_another_network_namespace(bench: Bench) -> None:
    """The socket table is another namespace's: nothing is said about connections."""
    pod, server, config = start(bench), server_of(bench), bench.node.kubeconfig_of()
    inside = bench.command("unshare", "--net")
    environment = bench.environment()
    unreached = f"""
        warning: node, pods not read: the API server at {server} cannot be reached: Network is unreachable
        hint: check the server address in kubeconfig {config} (environment KUBECONFIG), and that the server runs there: curl -k {server}/livez
        """  # noqa: E501
    assert_table(
        bench.node.run(*inside, "resources", env=environment),
        """
        RESOURCE       STATE    DEVICES  ALLOCATED  FREE  NUMA     PLUGIN     NODE
        seen.test/gpu  Unknown  ?/?      1          ?     0:1 1:1  ~gpu.sock  ?
        """,
        unreached,
    )
    assert_table(
        bench.node.run(
            *inside,
            "plugins",
            "gpu.sock",
            "-o",
            "custom-columns=S:.state,K:.kubelet",
            env=environment,
        ),
        """
        S        K
        Serving  <none>
        """,
    )
    assert_table(
        bench.node.run(*inside, "pods", env=environment),
        f"""
        NAMESPACE  POD    CONTAINER  RESOURCE       DEVICES  NUMA  CPUS  MEMORY  ALIGNED
        default    {pod}  main       seen.test/gpu  gpu-0    0     -     -       yes
        """,
    )
    assert_table(
        bench.node.run(*inside, "devices", env=environment),
        f"""
        DEVICE  RESOURCE       HEALTH  NUMA  STATE    HOLDER
        gpu-0   seen.test/gpu  ?       0     Unknown  default/{pod}/main
        gpu-1   seen.test/gpu  ?       1     Unknown  -
        """,
        unreached,
    )
    assert_table(
        bench.node.run(*inside, "who", "gpu-0", env=environment),
        f"""
        DEVICE  RESOURCE       WHAT       NAMESPACE  POD    CONTAINER  STATE   PID  COMMAND
        gpu-0   seen.test/gpu  container  default    {pod}  main       active  -    -
        """,
    )
