package redquake.drivers;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.RedisConnectionException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import io.lettuce.core.SslVerifyMode;
import io.lettuce.core.api.async.BaseRedisAsyncCommands;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.PartitionSelectorException;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.Delay;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.net.ssl.KeyManager;
import javax.net.ssl.TrustManager;
import redquake.adapter.Adapter;
import redquake.adapter.Call;
import redquake.adapter.Certificates;
import redquake.adapter.Client;
import redquake.adapter.Failure;
import redquake.adapter.Failure.Kind;
import redquake.adapter.InForce;
import redquake.adapter.Options;
import redquake.adapter.Refusal;
import redquake.adapter.Request.Command;
import redquake.adapter.Settings;
import redquake.adapter.Settings.Topology;

/** The asynchronous API of Lettuce on one connection that all requests share. */
public final class Lettuce implements Client {

    private static final Set<String> SET_BY_TARGET = Set.of("sslOptions", "host", "port", "socket", "ssl", "startTls", "verifyPeer", "verifyMode",
            "database", "authentication", "password", "sentinel", "sentinels", "sentinelMasterId");
    private static final List<Integer> SHOWN_ATTEMPTS = List.of(1, 5, 10, 15, 20);
    private static final Duration SHUTDOWN = Duration.ofSeconds(2);

    /** What the library says before it has written a command. */
    private static final List<String> NOT_SENT = List.of("Currently not connected", "Connection is closed", "Request queue size exceeded",
            "Command buffer size exceeded", "Internal stack size exceeded");

    private static final Map<String, CommandType> TYPES = new HashMap<>();

    static {
        for (CommandType type : CommandType.values()) {
            TYPES.put(type.toString(), type);
        }
    }

    /** Of a command that the library has no constant for. */
    private record Keyword(byte[] getBytes) implements ProtocolKeyword {
        @Override
        public String toString() {
            return new String(getBytes, StandardCharsets.US_ASCII);
        }
    }

    private final Topology topology;
    private final ClientResources resources;
    private final AbstractRedisClient client;
    private final ClientOptions options;
    private final List<RedisURI> uris;
    private BaseRedisAsyncCommands<byte[], byte[]> connection;

    public static void main(String[] args) {
        Adapter.run("Lettuce", "io.lettuce:lettuce-core", Lettuce::new, args);
    }

    private Lettuce(Settings settings) throws Refusal {
        topology = settings.topology();
        if (topology == Topology.CLUSTER && settings.database() != 0) {
            // It would silently use database 0.
            throw Refusal.invalid("database", "Lettuce does not select a database in a cluster");
        }
        ClientOptions.Builder optionsBuilder = topology == Topology.CLUSTER ? ClusterClientOptions.builder() : ClientOptions.builder();
        ClientResources.Builder resourcesBuilder = ClientResources.builder();
        RedisURI.Builder uriBuilder = RedisURI.builder();
        new Options(Map.of()).apply(settings.options(), "options", SET_BY_TARGET, optionsBuilder, resourcesBuilder, uriBuilder);
        if (settings.tls() != null) {
            optionsBuilder.sslOptions(sslOptions(new Certificates(settings.tls())));
        }
        options = (ClientOptions) Options.build(optionsBuilder, "options");
        uris = uris(uriBuilder, settings);
        resources = (ClientResources) Options.build(resourcesBuilder, "options");
        if (topology == Topology.CLUSTER) {
            RedisClusterClient cluster = RedisClusterClient.create(resources, uris);
            cluster.setOptions((ClusterClientOptions) options);
            client = cluster;
        } else {
            RedisClient single = RedisClient.create(resources, uris.get(0));
            single.setOptions(options);
            client = single;
        }
    }

    /** One for each address; with sentinels, a single one that has them all. */
    private static List<RedisURI> uris(RedisURI.Builder builder, Settings settings) {
        builder.withDatabase(settings.database());
        login(builder, settings.login());
        tls(builder, settings.tls());
        List<RedisURI> uris = new ArrayList<>();
        for (Settings.Address address : settings.addresses()) {
            if (settings.topology() == Topology.SENTINEL) {
                RedisURI.Builder sentinel = RedisURI.builder().withHost(address.host()).withPort(address.port());
                login(sentinel, settings.sentinelLogin());
                tls(sentinel, settings.tls());
                builder.withSentinel(sentinel.build());
            } else {
                uris.add(builder.withHost(address.host()).withPort(address.port()).build());
            }
        }
        return uris.isEmpty() ? List.of(builder.withSentinelMasterId(settings.primaryName()).build()) : uris;
    }

    private static void login(RedisURI.Builder builder, Settings.Login login) {
        if (login.username() != null) {
            builder.withAuthentication(login.username(), login.password() == null ? "" : login.password());
        } else if (login.password() != null) {
            builder.withPassword((CharSequence) login.password());
        }
    }

    private static void tls(RedisURI.Builder builder, Settings.Tls tls) {
        if (tls != null) {
            builder.withSsl(true).withVerifyPeer(new Certificates(tls).checksHost() ? SslVerifyMode.FULL : SslVerifyMode.CA);
        }
    }

    private static SslOptions sslOptions(Certificates certificates) throws Refusal {
        TrustManager trustManager = certificates.trustManager();
        KeyManager[] keyManagers = certificates.keyManagers();
        return SslOptions.builder().sslParameters(certificates::parameters).sslContext(context -> {
            context.trustManager(trustManager);
            if (keyManagers.length > 0) {
                context.keyManager(keyManagers[0]);
            }
        }).build();
    }

    @Override
    public int capacity(int inFlight) {
        return inFlight;
    }

    @Override
    public void open() throws Exception {
        try {
            if (client instanceof RedisClusterClient cluster) {
                connection = cluster.connect(ByteArrayCodec.INSTANCE).async();
            } else {
                connection = ((RedisClient) client).connect(ByteArrayCodec.INSTANCE).async();
            }
        } catch (RedisConnectionException e) {
            throw Failure.textOf(e).startsWith("Cannot connect to a Redis Sentinel") ? Refusal.bySentinel(e) : e;
        }
        connection.ping().get();
    }

    @Override
    public Map<String, Object> options() {
        Delay delay = resources.reconnectDelay();
        String delays = SHOWN_ATTEMPTS.stream().map(attempt -> InForce.text(delay.createDelay(attempt))).collect(Collectors.joining(" "));
        return new InForce("io.lettuce.core", SET_BY_TARGET).add("", options).add("", uris.get(0))
                .put("ioThreadPoolSize", resources.ioThreadPoolSize())
                .put("computationThreadPoolSize", resources.computationThreadPoolSize())
                .put("reconnectDelay", delays + " before attempts " + SHOWN_ATTEMPTS)
                .options();
    }

    /** The commands of a pipeline are dispatched without waiting for replies in between, which is how Lettuce pipelines on a shared connection. */
    @Override
    public void perform(Call call) {
        List<Command> commands = call.request().commands();
        List<CompletableFuture<Object>> replies = new ArrayList<>(commands.size());
        call.sent();
        for (Command command : commands) {
            replies.add(dispatch(command));
        }
        CompletableFuture.allOf(replies.toArray(CompletableFuture[]::new)).whenComplete((all, error) -> {
            call.done();
            if (error == null) {
                call.succeeded(replies.stream().map(CompletableFuture::join).toList(), UnaryOperator.identity());
            } else {
                call.failed(failure(replies));
            }
        });
    }

    private CompletableFuture<Object> dispatch(Command command) {
        String name = command.name();
        ProtocolKeyword type = TYPES.get(name);
        byte[][] words = command.words();
        int key = command.keyIndex();
        CommandArgs<byte[], byte[]> arguments = new CommandArgs<>(ByteArrayCodec.INSTANCE);
        for (int i = 1; i < words.length; i++) {
            if (i == key) {
                arguments.addKey(words[i]);
            } else {
                arguments.add(words[i]);
            }
        }
        try {
            return connection.<Object>dispatch(type == null ? new Keyword(words[0]) : type, new AnyReply(), arguments).toCompletableFuture();
        } catch (RedisException e) {
            return CompletableFuture.failedFuture(e);
        }
    }

    private static Failure failure(List<CompletableFuture<Object>> replies) {
        Stream<Failure> failures = replies.stream().filter(CompletableFuture::isCompletedExceptionally)
                .map(reply -> reply.handle((value, error) -> failure(error)).join());
        return Failure.ofPipeline(replies.size(), failures.toList());
    }

    private static Failure failure(Throwable error) {
        Throwable cause = error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
        return new Failure(kind(cause), Failure.textOf(cause));
    }

    private static Kind kind(Throwable error) {
        if (error instanceof RedisCommandExecutionException) {
            return Kind.REPLY;
        }
        if (error instanceof RedisCommandTimeoutException) {
            return Kind.TIMEOUT;
        }
        // A cluster's command that finds no node, or no connection to its node, has not been written to any that would have executed it.
        boolean noNode = error instanceof PartitionSelectorException || error instanceof RedisConnectionException;
        if (noNode || error instanceof RedisException && NOT_SENT.stream().anyMatch(Failure.textOf(error)::startsWith)) {
            return Kind.REFUSED;
        }
        boolean broken = error instanceof IOException || error instanceof CancellationException
                || error instanceof RedisException && Failure.textOf(error).startsWith("Connection ");
        return broken ? Kind.LOST : Kind.OTHER;
    }

    @Override
    public void close() {
        client.shutdown(Duration.ZERO, SHUTDOWN);
        resources.shutdown(0, SHUTDOWN.toMillis(), TimeUnit.MILLISECONDS).awaitUninterruptibly(SHUTDOWN.toMillis());
    }
}
