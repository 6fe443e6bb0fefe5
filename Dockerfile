# The image of the broker. It answers to what compose files and charts do with
# RabbitMQ's image: its variables, files, volume, ports, tools and user.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false \
	-ldflags "-s -w -X github.com/leveretmq/leveret/broker.release=$VERSION" -o /leveret ./cmd/leveret \
	&& packaging/image-tree /leveret /tree

FROM debian:bookworm-slim
RUN groupadd --gid 999 --system rabbitmq \
	&& useradd --uid 999 --system --home-dir /var/lib/rabbitmq --gid rabbitmq rabbitmq
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /tree/ /
RUN chown -R rabbitmq:rabbitmq /var/lib/rabbitmq /etc/rabbitmq
# Variables give way to listeners.tcp in a mounted rabbitmq.conf, as in RabbitMQ.
ENV HOME=/var/lib/rabbitmq \
	RABBITMQ_CONFIG_FILE=/etc/rabbitmq/rabbitmq \
	RABBITMQ_CONFIG_FILES=/etc/rabbitmq/conf.d \
	RABBITMQ_ENABLED_PLUGINS_FILE=/etc/rabbitmq/enabled_plugins \
	RABBITMQ_MNESIA_BASE=/var/lib/rabbitmq/mnesia \
	RABBITMQ_NODE_IP_ADDRESS=0.0.0.0 \
	RABBITMQ_NODE_PORT=5672
USER 999
VOLUME /var/lib/rabbitmq
EXPOSE 5672 5671 15672 15671 15692
HEALTHCHECK --start-period=10s --start-interval=1s CMD ["rabbitmq-diagnostics", "-q", "check_running"]
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["rabbitmq-server"]
