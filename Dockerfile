# The image that `make image` also makes, for those who have Docker: the manager and the load agent in one, both static.
FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26-bookworm@sha256:551752d3ad9de9923190bf5280500617ed8fee287ffb4b0220e770ef89346258 AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
ENV CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} GOFLAGS="-trimpath -buildvcs=false -gcflags=all=-dwarf=false"
WORKDIR /src
# Modules first: this layer stays as it is while only code changes.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN go build -ldflags "-s -w -X github.com/redquake/redquake/internal/version.Version=${VERSION}" -o /out/manager . && \
    go build -ldflags "-s -w -X github.com/redquake/redquake/internal/version.Version=${VERSION}" -o /out/redquake ./cmd/redquake && \
    go build -ldflags "-s -w" -o /out/netfault ./cmd/netfault
# It drops packets of a pod, whose user need not be root.
RUN apt-get update && apt-get install -y --no-install-recommends libcap2-bin && setcap cap_net_admin+ep /out/netfault

FROM gcr.io/distroless/static:nonroot@sha256:e2e927ec666bae08560abb3c55d0659eceabb657f56b6782ab500a9fc7f555e3
ARG VERSION=dev
ARG REVISION=
ARG CREATED=
LABEL org.opencontainers.image.title="Redquake" \
      org.opencontainers.image.description="Kubernetes operator for chaos and load tests of Redis" \
      org.opencontainers.image.url="https://github.com/redquake/redquake" \
      org.opencontainers.image.source="https://github.com/redquake/redquake" \
      org.opencontainers.image.documentation="https://github.com/redquake/redquake/blob/main/README.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
COPY --from=build /out/manager /manager
COPY --from=build /out/redquake /redquake
COPY --from=build /out/netfault /netfault
USER 65532:65532
ENTRYPOINT ["/manager"]
