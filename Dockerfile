# headcount alone with the C library, for a user who may do nothing else: no shell, no packages.
# tests/kit/dockerfile takes the same steps without Docker.

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked \
    && install -D --strip target/release/headcount image/headcount \
    && mkdir image/data

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/image/headcount /usr/bin/headcount
COPY --from=build --chown=65532:65532 /src/image/data /var/lib/headcount
# Readable for that user, whatever the umask of whoever cloned this.
COPY --chmod=0644 config/headcount.toml /etc/headcount/headcount.toml
# data and backups are directories in here.
WORKDIR /var/lib/headcount
VOLUME /var/lib/headcount
USER 65532:65532
# Who may reach these is for whoever publishes them to say; without auth.keys, or auth.open = true, the start is refused.
ENV HEADCOUNT__SERVER__LISTEN=0.0.0.0:8787 HEADCOUNT__SERVER__ADMIN_LISTEN=0.0.0.0:8788
EXPOSE 8787 8788
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["/usr/bin/headcount", "health", "--config", "/etc/headcount/headcount.toml"]
ENTRYPOINT ["/usr/bin/headcount"]
CMD ["serve", "--config", "/etc/headcount/headcount.toml"]
