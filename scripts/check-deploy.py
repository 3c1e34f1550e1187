#!/usr/bin/env python3
"""Asserts the shape of what cannot be run on every machine: deploy/kubernetes, deploy/compose.yaml, deploy/systemd.

Needs PyYAML (`make check-deploy` installs it into target/). Says each thing that is wrong and ends with 1. With kubectl or
systemd-analyze on the machine these are asked too; both work without a cluster or a running systemd.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
PROBES = {"livenessProbe": "/livez", "readinessProbe": "/readyz"}
wrong = []


def check(ok, what):
    if not ok:
        wrong.append(what)


def documents():
    """Every Kubernetes object of the folder, with the file it is in."""
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        if path.name != "kustomization.yaml":
            for document in yaml.safe_load_all(path.read_text()):
                yield path.name, document


def check_container(name, kind, container):
    check(container.get("image") == "seckill", f"{name}: image is {container.get('image')}, kustomization.yaml renames seckill")
    context = container.get("securityContext", {})
    check(context.get("allowPrivilegeEscalation") is False, f"{name}: allowPrivilegeEscalation")
    check(context.get("readOnlyRootFilesystem") is True, f"{name}: readOnlyRootFilesystem")
    check(context.get("capabilities", {}).get("drop") == ["ALL"], f"{name}: capabilities are not dropped")
    resources = container.get("resources", {})
    check({"cpu", "memory"} <= set(resources.get("requests", {})), f"{name}: requests")
    check("memory" in resources.get("limits", {}), f"{name}: no memory limit")
    if kind == "Job":
        return
    for probe, path in PROBES.items():
        check(container.get(probe, {}).get("httpGet", {}).get("path") == path, f"{name}: {probe} is not {path}")
        check(container.get(probe, {}).get("httpGet", {}).get("port") == "admin", f"{name}: {probe} is not on the admin port")
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
    for container in pod["containers"]:
        check_container(name, kind, container)


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
            if kind != "Job":
                args = template["spec"]["containers"][0]["args"]
                check(name == "seckill-" + args[args.index("--role") + 1], f"{file}: {name} runs {args}")
        if kind in ("Service", "PodDisruptionBudget"):
            selector = document["spec"]["selector"]
            selectors.append((name, selector.get("matchLabels", selector)["app.kubernetes.io/name"]))
        if kind == "Service":
            ports = [port["targetPort"] for port in document["spec"]["ports"]]
            check(document["spec"].get("clusterIP") == "None" or "admin" not in ports, f"{file}: {name} exposes the admin port")
        if kind == "Secret":
            for key, value in document["stringData"].items():
                check("CHANGE_ME" in value, f"{file}: {key} looks like a real secret")
    for name, label in selectors:
        check(label in labels, f"{name} selects {label}, which no pod has")
    wanted = [("Deployment", "api"), ("StatefulSet", "relay"), ("Deployment", "consumer"), ("Deployment", "reconcile"),
              ("Job", "migrate"), ("HorizontalPodAutoscaler", "api"), ("Service", "api"),
              *(("PodDisruptionBudget", role) for role in ("api", "relay", "consumer", "reconcile"))]
    for kind, role in wanted:
        check((kind, f"seckill-{role}") in kinds, f"there is no {kind} seckill-{role}")
    if shutil.which("kubectl"):
        built = subprocess.run(["kubectl", "kustomize", str(DEPLOY / "kubernetes")], capture_output=True, text=True)
        check(built.returncode == 0, f"kubectl kustomize: {built.stderr}")
        images = set(re.findall(r"^\s*(?:- )?image: (.*)$", built.stdout, re.M))
        check(built.returncode or images == {"registry.example.org/seckill:0.1.0"}, f"images after kustomize: {images}")


def check_compose():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    for role in ("api", "relay", "consumer", "reconcile"):
        check(services[role].get("command") == ["--role", role], f"compose.yaml: {role} runs {services[role].get('command')}")
        check(services[role].get("stop_grace_period") == "15s", f"compose.yaml: {role} has no time to drain")
    for name, service in services.items():
        secrets = [v for v in service.get("environment", {}).values() if "${" in str(v)]
        check(all(":?}" in value for value in secrets), f"compose.yaml: {name} starts without a secret")
    docker = (ROOT / "Dockerfile").read_text()
    check("\nUSER nonroot\n" in docker and "distroless" in docker, "Dockerfile: not the small image of a user without rights")


def check_systemd():
    unit = (DEPLOY / "systemd/seckill@.service").read_text()
    for option in ("NoNewPrivileges=yes", "ProtectSystem=strict", "DynamicUser=yes", "CapabilityBoundingSet=\n", "Restart=always"):
        check(option in unit, f"seckill@.service: no {option.strip()}")
    check("--role %i" in unit, "seckill@.service: the instance is not the role")
    if shutil.which("systemd-analyze"):
        for path in sorted((DEPLOY / "systemd").glob("*.service")):
            done = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True)
            # The program is not installed on the machine that checks.
            said = [line for line in done.stderr.splitlines() if line.strip() and "is not executable" not in line]
            check(not said, f"{path.name}: {said}")


for part in (check_kubernetes, check_compose, check_systemd):
    part()
json.loads((DEPLOY / "grafana/seckill.json").read_text())
print("\n".join(wrong) or "deploy/: as it should be", file=sys.stderr if wrong else sys.stdout)
sys.exit(bool(wrong))
