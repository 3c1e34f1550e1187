#!/usr/bin/env python3
"""Asserts the shape of what cannot be run on every machine: deploy/kubernetes, deploy/compose.yaml, deploy/systemd.

Needs PyYAML (`make check-deploy` installs it into target/). Says each thing that is wrong and ends with 1. Asked too where they
are: kubernetes-validate (the schemas of Kubernetes; `make check-deploy` tries to install it), kubectl, docker compose, haproxy,
systemd-analyze and promtool; all work without a cluster, a daemon or a running systemd. Says which of them were not there.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import yaml

import pod_security

try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
PROBES = {"livenessProbe": "/livez", "readinessProbe": "/readyz"}
# The oldest that has what the manifests use (preStop.sleep), and the newest whose schemas are known.
VERSIONS = ("1.30", "1.34")
wrong, not_asked = [], []


def installed(program):
    """Whether a program can be asked; notes it when it cannot."""
    found = shutil.which(program)
    if not found and program not in not_asked:
        not_asked.append(program)
    return found


def check(ok, what):
    if not ok:
        wrong.append(what)


def documents():
    """Every Kubernetes object of the folder, with the file it is in."""
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        if path.name != "kustomization.yaml":
            for document in yaml.safe_load_all(path.read_text()):
                yield path.name, document


def readyz_s():
    """Within how many seconds /readyz is answered, as the manual says it."""
    return int(re.search(r"\*\*within (\d+) s\*\*", (ROOT / "docs/operations.md").read_text())[1])


def check_balancer_limits():
    """A balancer waits longer for /readyz than that takes, whatever the servers do."""
    for name in ("three-hosts/haproxy.cfg", "cells/haproxy.cfg"):
        limit = re.search(r"^\s+timeout check (\d+)(ms|s)$", (DEPLOY / name).read_text(), re.M)
        limit_s = int(limit[1]) / (1000 if limit[2] == "ms" else 1)
        check(limit_s > readyz_s(), f"{name}: a check waits {limit_s} s, /readyz is answered within {readyz_s()} s")


def check_container(name, kind, container):
    check(container.get("image") == "seckill", f"{name}: image is {container.get('image')}, kustomization.yaml renames seckill")
    context = container.get("securityContext", {})
    check(context.get("allowPrivilegeEscalation") is False, f"{name}: allowPrivilegeEscalation")
    check(context.get("readOnlyRootFilesystem") is True, f"{name}: readOnlyRootFilesystem")
    check(context.get("capabilities", {}).get("drop") == ["ALL"], f"{name}: capabilities are not dropped")
    mounts = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts", [])}
    check(mounts.get("files") == "/etc/seckill-files", f"{name}: no place for certificates and keys")
    resources = container.get("resources", {})
    check({"cpu", "memory"} <= set(resources.get("requests", {})), f"{name}: requests")
    check("memory" in resources.get("limits", {}), f"{name}: no memory limit")
    if kind == "Job":
        return
    for probe, path in PROBES.items():
        check(container.get(probe, {}).get("httpGet", {}).get("path") == path, f"{name}: {probe} is not {path}")
        check(container.get(probe, {}).get("httpGet", {}).get("port") == "admin", f"{name}: {probe} is not on the admin port")
    limit_s = container.get("readinessProbe", {}).get("timeoutSeconds", 1)
    check(limit_s > readyz_s(), f"{name}: readinessProbe waits {limit_s} s, /readyz is answered within {readyz_s()} s")
    nodes = [e for e in container.get("env", []) if e["name"] == "SECKILL__RUNTIME__NODE"]
    check(nodes and nodes[0]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name", f"{name}: runtime.node is not the pod's name")


def check_pod(name, kind, pod, drain_s):
    context = pod.get("securityContext", {})
    check(context.get("runAsNonRoot") is True and context.get("runAsUser", 0) > 0, f"{name}: may run as root")
    check(context.get("seccompProfile", {}).get("type") == "RuntimeDefault", f"{name}: seccompProfile")
    check(pod.get("automountServiceAccountToken") is False, f"{name}: mounts a token")
    # A Service called seckill-… would set SECKILL_… variables in every pod.
    check(pod.get("enableServiceLinks") is False, f"{name}: enableServiceLinks")
    if kind != "Job":
        container = pod["containers"][0]
        pause = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        grace = pod.get("terminationGracePeriodSeconds", 0)
        check(grace > drain_s + pause, f"{name}: {grace} s to stop, drain_ms and the pause need more than {drain_s + pause}")
    for container in pod.get("initContainers", []) + pod["containers"]:
        check_container(name, kind, container)


def check_pod_security():
    """Every pod against the profile that its namespace enforces; and the profile's own rules, each broken once."""
    for missed in pod_security.unseen():
        check(False, f"pod_security.py sees nothing wrong in {missed}")
    for file, document in documents():
        if document["kind"] == "Namespace":
            enforced = document["metadata"]["labels"].get("pod-security.kubernetes.io/enforce")
            check(enforced == "restricted", f"{file}: enforces {enforced}")
        template = document.get("spec", {}).get("template")
        if template:
            for line in pod_security.refused(template["spec"], template["metadata"]):
                check(False, f"{file}: Pod Security restricted refuses {document['metadata']['name']}: {line}")


def check_production():
    """Kubernetes' settings are at least those of config/production.toml, which the image and the compose file use."""
    shared = tomllib.loads((DEPLOY / "kubernetes/config.toml").read_text())
    for section, keys in tomllib.loads((ROOT / "config/production.toml").read_text()).items():
        for key, value in keys.items():
            has = shared.get(section, {}).get(key)
            check(has == value, f"kubernetes/config.toml: {section}.{key} is {has}, config/production.toml has {value}")


def check_secrets():
    """Keys of tokens go to the api only, and every Secret that a pod needs is in the example."""
    examples = {d["metadata"]["name"]: set(d["stringData"]) for _, d in documents() if d["kind"] == "Secret"}
    for file, document in documents():
        template = document.get("spec", {}).get("template")
        for container in pod_security.containers_of(template["spec"]) if template else []:
            needed = {e["secretRef"]["name"] for e in container.get("envFrom", []) if not e["secretRef"].get("optional")}
            check(needed <= set(examples), f"{file}: secret.example.yaml lacks {needed - set(examples)}")
            keys = {key for name in needed for key in examples.get(name, ())}
            signs = {"SECKILL__AUTH__SECRET", "SECKILL__P1_ENTRY__TOKEN_SECRET"}
            check(signs & keys == (signs if container["name"] == "api" else set()), f"{file}: {container['name']} has {signs & keys}")
            database = "SECKILL_MYSQL_URL" in keys
            check(database == (container["name"] != "relay"), f"{file}: {container['name']} and the database's password: {database}")


def check_schemas():
    """Every object against the schemas of Kubernetes: unknown fields and wrong types, which a cluster would refuse or drop."""
    if kubernetes_validate is None:
        not_asked.append("kubernetes-validate")
        return
    for file, document in documents():
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                check(False, f"{file}: {document['kind']} {document['metadata']['name']}, Kubernetes {version}: {error.message}")


def check_policies(policies, labels):
    """Every pod is behind a policy for both ways, and no policy opens the admin port to everybody."""
    covered, opened, https = set(), set(), set()
    for policy in policies:
        spec, name = policy["spec"], policy["metadata"]["name"]
        for expression in spec["podSelector"].get("matchExpressions", []):
            if set(spec["policyTypes"]) == {"Ingress", "Egress"}:
                covered |= set(expression["values"])
        out = {port["port"] for rule in spec.get("egress", []) for port in rule["ports"]}
        opened |= out
        https |= {spec["podSelector"].get("matchLabels", {}).get("app.kubernetes.io/name")} if 443 in out else set()
        for rule in spec.get("ingress", []):
            ports = {port["port"] for port in rule.get("ports", [])}
            check(ports and (rule.get("from") or ports == {8080}), f"NetworkPolicy {name}: opens {ports or 'every port'} to everybody")
    # Names, Redis with its sentinels, RabbitMQ, the database, the issuer, a collector of traces.
    needed = {53, 6379, 26379, 5671, 5672, 3306, 443, 4318}
    check(opened == needed, f"NetworkPolicy: the ways out are {opened}, needed are {needed}")
    # The issuer's key set; webhooks.
    check(https == {"seckill-api", "seckill-reconcile"}, f"NetworkPolicy: {https} may go out to 443")
    check(covered == labels, f"NetworkPolicy: {labels ^ covered} are in the one and not in the other")


def check_listed():
    """Every manifest is applied; the example of a Secret is not."""
    listed = set(yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())["resources"])
    there = {path.name for path in (DEPLOY / "kubernetes").glob("*.yaml")} - {"kustomization.yaml", "secret.example.yaml"}
    check(listed == there, f"kustomization.yaml: {listed ^ there} are in the list or in the folder only")


def check_kubernetes():
    defaults = tomllib.loads((ROOT / "config/default.toml").read_text())
    config = tomllib.loads((DEPLOY / "kubernetes/config.toml").read_text())
    drain_s = {**defaults["runtime"], **config.get("runtime", {})}["drain_ms"] / 1000
    kinds, selectors, labels = {}, [], set()
    for file, document in documents():
        kind, name = document["kind"], document["metadata"]["name"]
        kinds[kind, name] = document
        if kind in ("Deployment", "StatefulSet", "Job"):
            template = document["spec"]["template"]
            label = template["metadata"]["labels"]["app.kubernetes.io/name"]
            labels.add(label)
            check(label == name, f"{file}: {name} labels its pods {label}")
            check_pod(name, kind, template["spec"], drain_s)
            if kind == "Job":
                spec = template["spec"]
                does = [container["args"][-1] for container in spec.get("initContainers", []) + spec["containers"]]
                # The roles may run with rabbitmq.declare = false, so the queues are made here too.
                check(does == ["migrate", "topology"], f"{file}: {name} does {does}")
            else:
                args = template["spec"]["containers"][0]["args"]
                check(name == "seckill-" + args[args.index("--role") + 1], f"{file}: {name} runs {args}")
        if kind in ("Service", "PodDisruptionBudget"):
            selector = document["spec"]["selector"]
            selectors.append((name, selector.get("matchLabels", selector)["app.kubernetes.io/name"]))
        if kind == "Service":
            ports = [port["targetPort"] for port in document["spec"]["ports"]]
            # For the shop's backend, inside the cluster, and for those alone whom network-policy.yaml lets in.
            inside = name == "seckill-admin" and document["spec"].get("type", "ClusterIP") == "ClusterIP"
            headless = document["spec"].get("clusterIP") == "None"
            check(inside or headless or "admin" not in ports, f"{file}: {name} exposes the admin port")
        if kind == "Secret":
            for key, value in document["stringData"].items():
                check("CHANGE_ME" in value, f"{file}: {key} looks like a real secret")
    check_policies([document for (kind, _), document in kinds.items() if kind == "NetworkPolicy"], labels)
    for name, label in selectors:
        check(label in labels, f"{name} selects {label}, which no pod has")
    wanted = [("Deployment", "api"), ("StatefulSet", "relay"), ("Deployment", "consumer"), ("Deployment", "reconcile"),
              ("Job", "migrate"), ("HorizontalPodAutoscaler", "api"), ("Service", "api"),
              *(("PodDisruptionBudget", role) for role in ("api", "relay", "consumer", "reconcile"))]
    for kind, role in wanted:
        check((kind, f"seckill-{role}") in kinds, f"there is no {kind} seckill-{role}")
    if installed("kubectl"):
        built = subprocess.run(["kubectl", "kustomize", str(DEPLOY / "kubernetes")], capture_output=True, text=True)
        check(built.returncode == 0, f"kubectl kustomize: {built.stderr}")
        images = set(re.findall(r"^\s*(?:- )?image: (.*)$", built.stdout, re.M))
        version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
        check(built.returncode or images == {f"registry.example.org/seckill:{version}"}, f"images after kustomize: {images}")


def check_compose():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    for role in ("api", "relay", "consumer", "reconcile"):
        command = ["--config", "/etc/seckill/production.toml", "--role", role]
        check(services[role].get("command") == command, f"compose.yaml: {role} runs {services[role].get('command')}")
        check(services[role].get("read_only") is True, f"compose.yaml: {role} may write")
        signs = [key for key in services[role]["environment"] if key.endswith(("AUTH__SECRET", "TOKEN_SECRET"))]
        check(len(signs) == (2 if role == "api" else 0), f"compose.yaml: {role} has {signs}")
        check(services[role].get("stop_grace_period") == "15s", f"compose.yaml: {role} has no time to drain")
    # A container's own name is another one after each re-creation.
    check(services["relay"].get("hostname") == "relay", "compose.yaml: the relay has no name that stays")
    for name, service in services.items():
        secrets = [v for v in service.get("environment", {}).values() if "${" in str(v)]
        check(all(":?" in value for value in secrets), f"compose.yaml: {name} starts without a secret")
    asked = {name: "x" * 40 for name in re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text())}
    if installed("docker") and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0:
        command = ["docker", "compose", "-f", str(DEPLOY / "compose.yaml"), "config", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **asked})
        check(done.returncode == 0, f"docker compose config: {done.stderr}")
    elif "docker" not in not_asked:
        not_asked.append("docker compose")


def not_kept_apart(pod):
    """What keeps a pod from being one on each node, or from being made anew when its node is lost; a line each."""
    spread = pod["topologySpreadConstraints"][0]
    if spread["whenUnsatisfiable"] != "DoNotSchedule":
        yield "two pods may be on one node"
    if spread.get("nodeTaintsPolicy") != "Honor":
        yield "a lost node counts as one without a pod, so nothing is made anew"
    waits = {t["key"]: t for t in pod.get("tolerations", [])}
    for key in ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"):
        toleration = waits.get(key, {})
        if toleration.get("tolerationSeconds", 300) > 60:
            yield f"stays on a lost node for {toleration.get('tolerationSeconds', 300)} s ({key})"
        # Without an effect it would tolerate NoSchedule, too, and the lost node would count again.
        if toleration.get("effect", "NoExecute") != "NoExecute" or (toleration and "effect" not in toleration):
            yield f"tolerates more than NoExecute ({key})"


def unseen_of_kept_apart(pod):
    """The ways to break a pod in which nothing is wrong that `not_kept_apart` does not find."""
    spread, first = (pod["topologySpreadConstraints"][0], pod["tolerations"][0])
    broken = {
        "ScheduleAnyway": {**pod, "topologySpreadConstraints": [{**spread, "whenUnsatisfiable": "ScheduleAnyway"}]},
        "nodeTaintsPolicy Ignore": {**pod, "topologySpreadConstraints": [{**spread, "nodeTaintsPolicy": "Ignore"}]},
        "no nodeTaintsPolicy": {
            **pod, "topologySpreadConstraints": [{key: spread[key] for key in spread if key != "nodeTaintsPolicy"}]},
        "no tolerations": {**pod, "tolerations": []},
        "one toleration": {**pod, "tolerations": [first]},
        "a toleration of every effect": {
            **pod, "tolerations": [{key: first[key] for key in first if key != "effect"}, *pod["tolerations"][1:]]},
    }
    return [way for way, changed in broken.items() if not list(not_kept_apart(changed))]


def check_read_by_haproxy(path, files):
    """haproxy itself reads the file, where it is installed; `files` are variables of its environment, its addresses are made up."""
    if installed("haproxy"):
        variables = set(re.findall(r"\$\{(\w+)\}", path.read_text()))
        values = {name: "8080" if name.endswith("PORT") else "127.0.0.1" for name in variables}
        values |= {name: "127.0.0.1:8080" for name in variables if name == "LISTEN" or name.endswith("API")}
        done = subprocess.run(
            ["haproxy", "-c", "-f", str(path)], capture_output=True, text=True, env={**os.environ, **values, **files})
        check(done.returncode == 0, f"haproxy -c {path.name}: {done.stdout}{done.stderr}")


def named_twice(compose, others):
    """Addresses that one list names twice, on any of the hosts; a role refuses such a list. `others` is the README's line for it."""
    for host in ("1", "2", "3"):
        script = f'HOST={host}; {others}; echo "$HOST_NEXT $HOST_LAST"'
        after = subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout.split()
        known = dict(zip(("HOST", "HOST_NEXT", "HOST_LAST"), (host, *after))) | {f"HOST_{n}": f"10.0.0.{n}" for n in "123"}
        for name, service in compose["services"].items():
            for value in (*service.get("environment", {}).values(), *service.get("command", [])):
                given = re.sub(r"\$\{(\w+)[^}]*\}", lambda variable: known.get(variable[1], "x"), value)
                # host:port behind a password, a scheme or a comma, or an address without a port.
                named = re.findall(r"(?:@|//|node=|,)([\w.-]+:\d+|10[.\d]+)", given)
                for address in sorted({address for address in named if named.count(address) > 1}):
                    yield f"{name} on host {host} has {address} twice in one list"


def check_three_hosts():
    """The overlay has something to patch and more settings than its base; the compose file names what it mounts, and who knows what."""
    folder = DEPLOY / "three-hosts/kubernetes"
    overlay = yaml.safe_load((folder / "kustomization.yaml").read_text())
    names = {d["metadata"]["name"] for _, d in documents()}
    for entry in overlay["replicas"] + [p["target"] for p in overlay["patches"] if "name" in p["target"]]:
        check(entry["name"] in names, f"three-hosts: there is no {entry['name']}")
    for file, document in documents():
        if document["kind"] in ("Deployment", "StatefulSet"):
            spread = document["spec"]["template"]["spec"].get("topologySpreadConstraints", [{}])
            label = spread[0].get("labelSelector", {}).get("matchLabels", {}).get("app.kubernetes.io/name")
            check(label == document["metadata"]["name"], f"{file}: is spread by {label}")
    base, more = (tomllib.loads((path / "config.toml").read_text()) for path in (DEPLOY / "kubernetes", folder))
    for section, keys in base.items():
        for key, value in keys.items():
            same = more.get(section, {}).get(key) == value
            check(same or (section, key) == ("redis", "durability"), f"three-hosts/config.toml: {section}.{key} is not the base's")
    if installed("kubectl"):
        built = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True)
        check(built.returncode == 0, f"kubectl kustomize three-hosts: {built.stderr}")
        objects = list(yaml.safe_load_all(built.stdout)) if built.returncode == 0 else []
        pods = [d["spec"]["template"]["spec"] for d in objects if d["kind"] in ("Deployment", "StatefulSet")]
        for pod in pods:
            for line in not_kept_apart(pod):
                check(False, f"three-hosts: {pod['containers'][0]['name']}: {line}")
        for missed in [what for pod in pods if not list(not_kept_apart(pod)) for what in unseen_of_kept_apart(pod)]:
            check(False, f"check-deploy.py sees nothing wrong in {missed}")
        modes = [tomllib.loads(d["data"]["config.toml"])["redis"]["mode"] for d in objects if d["kind"] == "ConfigMap"]
        check(not objects or modes == ["cluster"], f"three-hosts: redis.mode is {modes}")
    broker = (DEPLOY / "three-hosts/rabbitmq.conf").read_text()
    for setting in ("queue_leader_locator = balanced", "consumer_timeout = ", "cluster_partition_handling = pause_minority"):
        check(f"\n{setting}" in broker, f"three-hosts/rabbitmq.conf: no {setting}")
    shared = tomllib.loads((DEPLOY / "three-hosts/seckill.toml").read_text())
    for section in ("redis", "p3_relay", "p4_persist"):
        check(shared[section] == more[section], f"three-hosts: compose and Kubernetes have other settings in [{section}]")
    for name in ("haproxy.cfg", "haproxy-host.cfg"):
        check_read_by_haproxy(DEPLOY / "three-hosts" / name, {"CHECK": str(DEPLOY / "three-hosts/galera-check.sh")})
    text = (DEPLOY / "three-hosts/compose.yaml").read_text()
    compose = yaml.safe_load(text)
    asked = set(re.findall(r"\$\{(\w+):\?", text)) | {"BOOTSTRAP", "SECKILL_IMAGE"}
    check(set(re.findall(r"\$\{(\w+)", text)) <= asked, "three-hosts/compose.yaml: starts without a variable")
    others = re.search(r"^export HOST_NEXT=[^#]*", (DEPLOY / "three-hosts/README.md").read_text(), re.M)
    others = others[0].strip() if others else "true"
    for line in named_twice(compose, others):
        check(False, f"three-hosts/compose.yaml: {line}")
    for way, changed, order in (
        ("the own node twice", text.replace("${HOST_LAST:?is not set}", "${HOST}"), others),
        ("the own node and then all", text.replace("${HOST_NEXT:?is not set}", "1").replace("${HOST_LAST:?is not set}", "2"), others),
        ("one database node twice", text.replace("@seckill-3:3306", "@seckill-2:3306"), others),
        ("one Redis host twice", text.replace("${HOST_3}:7003", "${HOST_2}:7002"), others),
        ("one Galera node twice", text.replace(",${HOST_3}\"", ",${HOST_1}\""), others),
        ("the same others on each host", text, "export HOST_NEXT=2 HOST_LAST=3"),
    ):
        check(list(named_twice(yaml.safe_load(changed), order)), f"check-deploy.py sees nothing wrong in {way}")
    for name, service in compose["services"].items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            there = (DEPLOY / "three-hosts" / source).is_file() if source.startswith("./") else source in compose["volumes"]
            check(there, f"three-hosts/compose.yaml: {name} mounts {source}")
    for role in ("api", "relay", "consumer", "reconcile"):
        service = compose["services"][role]
        environment = service["environment"]
        check(service["command"][-1] == role and service["read_only"] is True, f"three-hosts/compose.yaml: {role}")
        check(environment["SECKILL__RUNTIME__NODE"] == f"{role}-${{HOST}}", f"three-hosts/compose.yaml: the name of {role}")
        check(("SECKILL_MYSQL_URL" in environment) == (role != "relay"), f"three-hosts/compose.yaml: {role} and the database")
        outside = environment["SECKILL__ADMIN__LISTEN"].startswith("0.0.0.0:")
        check(outside == (role == "api"), f"three-hosts/compose.yaml: the balancer asks the api, and nobody {role}, on its admin port")
        check(("SECKILL__AUTH__SECRET" in environment) == (role == "api"), f"three-hosts/compose.yaml: {role} and the keys of tokens")


def unserved(text):
    """What the loss of one cell takes from buyers of the others, by the balancer's configuration; a line each."""
    sections = {part.split("\n", 1)[0].strip(): part for part in re.split(r"^(?=\S)", text, flags=re.M)}
    servers = {name: re.findall(r"^\s+server (.*)$", part, re.M) for name, part in sections.items() if name.startswith("backend ")}
    fallback = re.search(r"^\s+default_backend (\S+)$", text, re.M)
    lists = servers.get(f"backend {fallback[1]}", []) if fallback else []
    cells = {name for name in servers if re.fullmatch(r"backend cell-\d+", name)}
    if len(lists) < 2 or sum(server.endswith(" backup") for server in lists) != len(lists) - 1:
        yield f"what has no sale in its path has {len(lists)} servers, one and its backups are needed"
    named = {server.split()[0] for server in lists}
    if named != {name.split()[1] for name in cells}:
        yield f"the lists come from {sorted(named)}, the cells are {sorted(cells)}"
    for name in sorted(cells):
        if any(server.endswith(" backup") for server in servers[name]):
            yield f"{name}: sales of a cell are in no other one"
    for name in servers:
        if "option httpchk GET /readyz" not in sections[name] or not all(" check " in server for server in servers[name]):
            yield f"{name}: nobody notices that it is lost"


def check_cells():
    """The balancer's configuration by its shape, and by haproxy itself where that is installed; every sale of the map has its cell."""
    path = DEPLOY / "cells/haproxy.cfg"
    text = path.read_text()
    for line in unserved(text):
        check(False, f"cells/haproxy.cfg: {line}")
    for way, changed in {
        "lists of the first cell only": text.replace("default_backend lists", "default_backend cell-1"),
        "two lists at once": text.replace(" backup", ""),
        "no check of a cell": text.replace("    option httpchk GET /readyz\n", "", 1),
        "a cell without lists": text + "\nbackend cell-3\n    option httpchk GET /readyz\n    server api-1 x check inter 1s\n",
    }.items():
        check(list(unserved(changed)), f"check-deploy.py sees nothing wrong in {way}")
    for line in (DEPLOY / "cells/cells.map").read_text().splitlines():
        cell = line.split()[-1] if line and not line.startswith("#") else None
        check(not cell or f"\nbackend {cell}\n" in text, f"cells.map: there is no {cell}")
    check_read_by_haproxy(path, {"CELLS_MAP": str(DEPLOY / "cells/cells.map"), "SOCKET": "/tmp/haproxy-check.sock"})


def check_image():
    """The Dockerfile by its shape: nothing here builds it."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
    stages = [line.split()[1] for line in lines if line.startswith("FROM ")]
    check(len(stages) == 2 and all(":" in image and not image.endswith(":latest") for image in stages), f"Dockerfile: stages {stages}")
    last = lines[max(at for at, line in enumerate(lines) if line.startswith("FROM ")):]
    check("distroless" in last[0], f"Dockerfile: the image is based on {last[0]}")
    check("USER 65532:65532" in last, "Dockerfile: not a user without rights, by number")
    check("STOPSIGNAL SIGTERM" in last, "Dockerfile: STOPSIGNAL")
    check(not any(line.startswith(("RUN ", "ADD ")) for line in last), "Dockerfile: the last stage has no shell to run anything")
    check(any(re.fullmatch(r'ENTRYPOINT \["/[a-z/]+seckill"\]', line) for line in last), "Dockerfile: ENTRYPOINT is not the program itself")
    debian = {re.search(r"bookworm|debian12|trixie|debian13", image)[0] for image in stages}
    check(debian in ({"bookworm", "debian12"}, {"trixie", "debian13"}), f"Dockerfile: built on another Debian than it runs on: {stages}")
    copied = {word.split("/")[0] for line in lines if line.startswith("COPY ") for word in line.split()[1:-1] if word[0] not in "-./"}
    context = set(re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(), re.M))
    check(copied <= context, f".dockerignore keeps out {copied - context}")


def check_systemd():
    unit = (DEPLOY / "systemd/seckill@.service").read_text()
    for option in ("NoNewPrivileges=yes", "ProtectSystem=strict", "DynamicUser=yes", "CapabilityBoundingSet=\n", "Restart=always"):
        check(option in unit, f"seckill@.service: no {option.strip()}")
    check("--role %i" in unit, "seckill@.service: the instance is not the role")
    # Without it two roles want one admin port; and a port that is taken for a while must not end a role for good.
    check("EnvironmentFile=/etc/seckill/%i.env\n" in unit, "seckill@.service: <role>.env may be missing")
    check("StartLimitIntervalSec=0\n" in unit, "seckill@.service: gives up after some starts")
    if installed("systemd-analyze"):
        for path in sorted((DEPLOY / "systemd").glob("*.service")):
            done = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True)
            # The program is not installed on the machine that checks.
            said = [line for line in done.stderr.splitlines() if line.strip() and "is not executable" not in line]
            check(not said, f"{path.name}: {said}")


def check_prometheus():
    """The scrape job is called as the rules expect it; promtool reads the file where it is installed."""
    config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    jobs = [job["job_name"] for job in config["scrape_configs"]]
    wanted = set(re.findall(r'job="(\w+)"', (DEPLOY / "prometheus/alerts.yml").read_text()))
    check(set(jobs) == wanted, f"prometheus.yml: scrapes {jobs}, the rules ask for {wanted}")
    if installed("promtool"):
        done = subprocess.run(["promtool", "check", "config", str(DEPLOY / "prometheus/prometheus.yml")], capture_output=True, text=True)
        said = done.stdout + done.stderr
        if "kubernetes_sd_configs not found" in said:
            not_asked.append("promtool (built without Kubernetes, as Debian's is)")
        else:
            check(done.returncode == 0, f"promtool check config: {said}")


for part in (check_kubernetes, check_listed, check_production, check_secrets, check_pod_security, check_schemas, check_compose,
             check_three_hosts, check_cells, check_balancer_limits, check_image, check_systemd, check_prometheus):
    part()
json.loads((DEPLOY / "grafana/seckill.json").read_text())
if not_asked:
    print(f"not asked, because it is not here: {', '.join(not_asked)}")
print("\n".join(wrong) or "deploy/: as it should be", file=sys.stderr if wrong else sys.stdout)
sys.exit(bool(wrong))
