# Stands in for gcr.io/distroless/cc-debian12:nonroot: the same packages, unpacked and never configured; no shell.
FROM localhost/debian:bookworm AS unpack
WORKDIR /packages
RUN apt-get update -q && apt-get download -q base-files ca-certificates gcc-12-base libc6 libgcc-s1 libgomp1 libssl3 libstdc++6 \
    media-types netbase tzdata
RUN mkdir /new && for package in *.deb; do dpkg-deb -x "$package" /new; done && \
    mkdir -p /new/etc/ssl/certs /new/home/nonroot && chmod 1777 /new/tmp && \
    cat /new/usr/share/ca-certificates/mozilla/*.crt >/new/etc/ssl/certs/ca-certificates.crt && \
    printf 'root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n' >/new/etc/passwd && \
    printf 'root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n' >/new/etc/group && \
    printf 'hosts: files dns\n' >/new/etc/nsswitch.conf && chown 65532:65532 /new/home/nonroot

FROM scratch
LABEL seckill.made-of="packages of Debian 12"
COPY --from=unpack /new/ /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
USER 65532
WORKDIR /home/nonroot
