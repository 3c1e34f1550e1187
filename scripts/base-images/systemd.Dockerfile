# A machine with systemd as its first process, for the units of deploy/systemd (tests/containers/systemd.rs).
FROM localhost/debian:bookworm
RUN apt-get update -q && apt-get install -q -y --no-install-recommends systemd dbus && rm -rf /var/lib/apt/lists/*
# What a container has no devices for.
RUN systemctl mask systemd-udevd systemd-modules-load getty.target console-getty systemd-logind
LABEL seckill.made-of="systemd of Debian 12 (252)"
CMD ["/lib/systemd/systemd"]
