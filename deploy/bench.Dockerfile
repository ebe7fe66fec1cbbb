# The bench in a fixed environment: the compiler of the workspace's rust-version, Debian 12, nothing else.
#
#   docker build -f deploy/bench.Dockerfile -t truetick-bench .
#   docker run --rm --privileged --cpuset-cpus 2,3 -v "$PWD/results:/results" truetick-bench why --out /results
#
# --privileged lets scripts/bench.sh set the governor and turbo of the host for the run, and put them back; without it
# they stay, and the output says so. --cpuset-cpus chooses the two cores.
FROM rust:1.95.0-bookworm AS build
# The image's own compiler: rust-toolchain.toml would load another.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /truetick
COPY . .
RUN cargo build --release --locked --package truetick

FROM debian:bookworm-slim
COPY --from=build /truetick/target/release/truetick /usr/local/bin/truetick
COPY scripts/bench.sh /usr/local/bin/bench.sh
ENV TRUETICK=/usr/local/bin/truetick
ENTRYPOINT ["/usr/local/bin/bench.sh"]
CMD ["why"]
