# The bench in a fixed environment: compiler of rust-toolchain.toml, Debian 12, nothing else.
#
#   docker build -f deploy/bench.Dockerfile -t truetick-bench .
#   docker run --rm --privileged --cpuset-cpus 2,3 -v "$PWD/results:/results" truetick-bench why --out /results
#
# --privileged lets scripts/bench.sh set the governor and turbo of the host for the run, and put them back; without it
# they stay, and the output says so. --cpuset-cpus chooses the two cores.
FROM rust:1.95-bookworm AS build
WORKDIR /truetick
COPY . .
RUN cargo build --release --locked --package truetick

FROM debian:bookworm-slim
COPY --from=build /truetick/target/release/truetick /usr/local/bin/truetick
COPY scripts/bench.sh /usr/local/bin/bench.sh
ENV TRUETICK=/usr/local/bin/truetick
ENTRYPOINT ["/usr/local/bin/bench.sh"]
CMD ["why"]
