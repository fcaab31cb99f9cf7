# The image of svc. With nothing but Docker:
#
#   docker build -t svc .
#
# With a bundle that is made already (./compile.sh --bundle):
#
#   docker build -t svc --build-context bundle=dist/svc-bundle .
#
# The user is 10001 of group 0. The file system may be read-only (--read-only): svc writes to the worktree, /work,
# and to its home, where settings, keys and what Deno has compiled are. docs/install.md has more.

FROM node:20-bookworm-slim AS build
ARG SVC_COMMIT=unknown
COPY . /src
RUN SVC_COMMIT=$SVC_COMMIT /src/compile.sh --bundle --output /bundle

FROM scratch AS bundle
COPY --from=build /bundle /

FROM debian:bookworm-slim
# tini is the first process: it passes signals on and reaps processes that lost their parent.
RUN apt-get update && \
    apt-get install --yes --no-install-recommends ca-certificates git tini && \
    rm -rf /var/lib/apt/lists/*
COPY --from=bundle / /opt/svc
COPY deploy/config.json /home/svc/.config/svc/config.json
RUN ln -s /opt/svc/svc /usr/local/bin/svc && \
    echo 'svc:x:10001:0::/home/svc:/bin/sh' >>/etc/passwd && \
    mkdir -p /work && chown -R 10001:0 /work /home/svc && chmod -R g=u /work /home/svc
ENV HOME=/home/svc SVC_HOST=0.0.0.0 SVC_PORT=8787 SVC_PATH=/work
USER 10001:0
WORKDIR /work
# What Deno compiles is kept, so that a container starts as quickly as a second start. The worktree and the trust in
# it are not.
RUN work=$(mktemp -d) && svc run --provider demo --path "$work" "list the files" && \
    rm -rf "$work" /home/svc/.config/svc/trust.json && chmod -R g=u /home/svc
EXPOSE 8787
HEALTHCHECK --interval=10s --timeout=6s --start-period=20s CMD ["svc", "health"]
ENTRYPOINT ["tini", "--", "svc"]
CMD ["serve"]
