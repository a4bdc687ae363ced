# The image that `make image` also makes, for those who have Docker: the manager and the load agent in one, both static.
ARG GO_IMAGE=docker.io/library/golang:1.26
ARG BASE_IMAGE=gcr.io/distroless/static:nonroot

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
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
    go build -ldflags "-s -w -X github.com/redquake/redquake/internal/version.Version=${VERSION}" -o /out/redquake ./cmd/redquake

FROM ${BASE_IMAGE}
COPY --from=build /out/manager /manager
COPY --from=build /out/redquake /redquake
USER 65532:65532
ENTRYPOINT ["/manager"]
