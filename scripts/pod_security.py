"""What Pod Security's profile "restricted" refuses, rule by rule (kubernetes.io/docs/concepts/security/pod-security-standards).

`refused(pod)` takes a pod's spec and metadata and returns a line for each breach, as an admission controller would refuse the pod.
The profile of Kubernetes 1.34, Linux only; a field that a rule does not name is nothing to it. Run by itself it breaks each rule
once and ends with 1 where nothing is said about it.
"""

import copy
import sys

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
}
SELINUX_TYPES = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
PROFILES = {"RuntimeDefault", "Localhost"}


def containers_of(spec):
    return [c for kind in ("initContainers", "containers", "ephemeralContainers") for c in spec.get(kind) or []]


def contexts(spec):
    """The security context of the pod and of each container, with a name to say."""
    return [("pod", spec.get("securityContext") or {})] + [
        (container["name"], container.get("securityContext") or {}) for container in containers_of(spec)
    ]


def of_the_pod(spec, metadata):
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(field):
            yield f"{field} is true"
    for volume in spec.get("volumes") or []:
        for kind in set(volume) - {"name"} - VOLUMES:
            yield f"volume {volume['name']} is a {kind}"
    for sysctl in (spec.get("securityContext") or {}).get("sysctls") or []:
        if sysctl["name"] not in SYSCTLS:
            yield f"sysctl {sysctl['name']}"
    for key, value in (metadata.get("annotations") or {}).items():
        if key.startswith("container.apparmor.security.beta.kubernetes.io/"):
            if value != "runtime/default" and not value.startswith("localhost/"):
                yield f"annotation {key} is {value}"


def of_a_context(name, context):
    if (context.get("windowsOptions") or {}).get("hostProcess"):
        yield f"{name}: hostProcess"
    selinux = context.get("seLinuxOptions") or {}
    if selinux.get("type", "") not in SELINUX_TYPES or selinux.get("user") or selinux.get("role"):
        yield f"{name}: seLinuxOptions {selinux}"
    for field in ("seccompProfile", "appArmorProfile"):
        kind = (context.get(field) or {}).get("type")
        if kind is not None and kind not in PROFILES:
            yield f"{name}: {field} is {kind}"
    if context.get("runAsNonRoot") is False:
        yield f"{name}: runAsNonRoot is false"
    if context.get("runAsUser") == 0:
        yield f"{name}: runs as user 0"


def of_a_container(container, pod):
    name, context = container["name"], container.get("securityContext") or {}
    if context.get("privileged"):
        yield f"{name}: privileged"
    if context.get("allowPrivilegeEscalation") is not False:
        yield f"{name}: allowPrivilegeEscalation is not false"
    if context.get("procMount", "Default") != "Default":
        yield f"{name}: procMount {context['procMount']}"
    capabilities = context.get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or []):
        yield f"{name}: does not drop ALL capabilities"
    if set(capabilities.get("add") or []) - {"NET_BIND_SERVICE"}:
        yield f"{name}: adds capabilities {capabilities['add']}"
    if context.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        yield f"{name}: runAsNonRoot is not true"
    if not context.get("seccompProfile") and not pod.get("seccompProfile"):
        yield f"{name}: no seccompProfile"
    for port in container.get("ports") or []:
        if port.get("hostPort"):
            yield f"{name}: hostPort {port['hostPort']}"
    hooks = (container.get("lifecycle") or {}).values()
    probes = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
    for asked in [*hooks, *filter(None, probes)]:
        for kind in ("httpGet", "tcpSocket"):
            if (asked.get(kind) or {}).get("host"):
                yield f"{name}: a probe or hook names a host"


def refused(spec, metadata):
    pod = spec.get("securityContext") or {}
    said = [*of_the_pod(spec, metadata)]
    said += [line for name, context in contexts(spec) for line in of_a_context(name, context)]
    return said + [line for container in containers_of(spec) for line in of_a_container(container, pod)]


GOOD = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {"name": "c", "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
    ],
}
# Where a value is put into the good pod: it breaks one rule.
BREACHES = [
    (("hostNetwork",), True), (("hostPID",), True), (("hostIPC",), True),
    (("volumes",), [{"name": "v", "hostPath": {"path": "/"}}]), (("volumes",), [{"name": "v", "nfs": {}}]),
    (("securityContext", "sysctls"), [{"name": "kernel.msgmax", "value": "1"}]),
    (("securityContext", "windowsOptions"), {"hostProcess": True}),
    (("securityContext", "seLinuxOptions"), {"type": "spc_t"}), (("securityContext", "seLinuxOptions"), {"user": "u"}),
    (("securityContext", "seLinuxOptions"), {"role": "r"}),
    (("securityContext", "seccompProfile"), {"type": "Unconfined"}), (("securityContext", "seccompProfile"), None),
    (("securityContext", "appArmorProfile"), {"type": "Unconfined"}),
    (("securityContext", "runAsNonRoot"), False), (("securityContext", "runAsNonRoot"), None),
    (("securityContext", "runAsUser"), 0), (("containers", 0, "securityContext", "runAsUser"), 0),
    (("containers", 0, "securityContext", "runAsNonRoot"), False), (("containers", 0, "securityContext", "privileged"), True),
    (("containers", 0, "securityContext", "allowPrivilegeEscalation"), None),
    (("containers", 0, "securityContext", "procMount"), "Unmasked"),
    (("containers", 0, "securityContext", "capabilities"), {"drop": ["NET_RAW"]}),
    (("containers", 0, "securityContext", "capabilities"), {"drop": ["ALL"], "add": ["SYS_ADMIN"]}),
    (("containers", 0, "securityContext", "seccompProfile"), {"type": "Unconfined"}),
    (("containers", 0, "ports"), [{"containerPort": 1, "hostPort": 1}]),
    (("containers", 0, "livenessProbe"), {"httpGet": {"path": "/", "port": 1, "host": "h"}}),
    (("containers", 0, "lifecycle"), {"preStop": {"tcpSocket": {"port": 1, "host": "h"}}}),
    (("initContainers",), [{"name": "i"}]), (("ephemeralContainers",), [{"name": "e"}]),
]
ANNOTATION = {"annotations": {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}}


def unseen():
    """What is broken and not said; empty when every rule works."""
    missed = [] if not refused(GOOD, {}) else [f"a good pod is refused: {refused(GOOD, {})}"]
    missed += [] if refused(GOOD, ANNOTATION) else ["the AppArmor annotation"]
    for path, value in BREACHES:
        pod = copy.deepcopy(GOOD)
        at = pod
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
        missed += [] if refused(pod, {}) else [f"{path}: {value}"]
    return missed


if __name__ == "__main__":
    print("\n".join(unseen()) or "every rule of the profile is seen broken")
    sys.exit(bool(unseen()))
