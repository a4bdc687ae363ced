package redquake.drivers;

import java.net.SocketTimeoutException;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisSentinelClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.builders.AbstractClientBuilder;
import redis.clients.jedis.builders.SentinelClientBuilder;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.Pool;
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

/** Jedis with its pool of connections, called by a thread for each request in flight. */
public final class Jedis implements Client {

    private static final int MOST_THREADS = 200;

    private static final String SENTINEL_CONFIG = "sentinelClientConfig";
    private static final Set<String> SET_BY_TARGET = Set.of("hostAndPort", "nodes", "masterName", "sentinels", "fromURI", "user", "password",
            "credentials", "credentialsProvider", "database", "ssl", "sslSocketFactory", "sslParameters", "sslOptions", "hostnameVerifier",
            "hostAndPortMapper");

    private static final Options LIBRARY = new Options(Map.of());
    private static final String SENTINEL_LISTENER = "-SentinelListener-";

    private final Topology topology;
    private final JedisClientConfig clientConfig;
    private final JedisClientConfig sentinelConfig;
    private final ConnectionPoolConfig poolConfig = new ConnectionPoolConfig();
    private final Set<HostAndPort> addresses;
    private final AbstractClientBuilder<?, ? extends UnifiedJedis> builder;
    private final ExecutorService threads = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "request");
        thread.setDaemon(true);
        return thread;
    });
    private UnifiedJedis client;
    private boolean closed;

    public static void main(String[] args) {
        Adapter.run("Jedis", "redis.clients:jedis", Jedis::new, args);
    }

    private Jedis(Settings settings) throws Refusal {
        topology = settings.topology();
        addresses = settings.addresses().stream().map(address -> new HostAndPort(address.host(), address.port()))
                .collect(Collectors.toCollection(LinkedHashSet::new));
        DefaultJedisClientConfig.Builder config = DefaultJedisClientConfig.builder().database(settings.database());
        // SentinelClientBuilder.build() has the same default.
        DefaultJedisClientConfig.Builder forSentinels = DefaultJedisClientConfig.builder().serverDefaultProtocol();
        Map<String, Object> options = new HashMap<>(settings.options());
        if (topology == Topology.SENTINEL) {
            builder = RedisSentinelClient.builder().masterName(settings.primaryName()).sentinels(addresses);
            String field = "options." + SENTINEL_CONFIG;
            LIBRARY.apply(Options.map(options.remove(SENTINEL_CONFIG), field), field, SET_BY_TARGET, forSentinels);
        } else {
            builder = topology == Topology.CLUSTER
                    ? RedisClusterClient.builder().nodes(addresses)
                    : RedisClient.builder().hostAndPort(addresses.iterator().next());
        }
        LIBRARY.apply(options, "options", SET_BY_TARGET, config, poolConfig, builder);
        clientConfig = complete(config, settings.login(), settings.tls());
        sentinelConfig = complete(forSentinels, settings.sentinelLogin(), settings.tls());
        builder.clientConfig(clientConfig);
        builder.poolConfig(poolConfig);
        if (builder instanceof SentinelClientBuilder<?> sentinel) {
            sentinel.sentinelClientConfig(sentinelConfig);
        }
    }

    private static JedisClientConfig complete(DefaultJedisClientConfig.Builder config, Settings.Login login, Settings.Tls tls) throws Refusal {
        if (login.given()) {
            config.user(login.username()).password(login.password());
        }
        if (tls != null) {
            encrypt(config, new Certificates(tls));
        }
        return config.build();
    }

    /** SslOptions, which are to replace these methods, take key stores only, so that they cannot check for another name of the server. */
    @SuppressWarnings("deprecation")
    private static void encrypt(DefaultJedisClientConfig.Builder config, Certificates certificates) throws Refusal {
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(certificates.keyManagers(), new TrustManager[] {certificates.trustManager()}, null);
            config.ssl(true).sslSocketFactory(context.getSocketFactory()).sslParameters(certificates.parameters());
        } catch (GeneralSecurityException e) {
            throw Refusal.invalid("tls", Failure.textOf(e));
        }
    }

    @Override
    public int capacity(int inFlight) {
        return Math.min(inFlight, MOST_THREADS);
    }

    @Override
    public void open() throws Exception {
        UnifiedJedis made;
        try {
            made = builder.build();
        } catch (JedisConnectionException e) {
            throw topology == Topology.SENTINEL ? refusalOfSentinels(e) : e;
        }
        if (!keep(made)) {
            made.close();
            return;
        }
        made.ping();
    }

    /** The library only logs why it could not ask a sentinel. */
    private Exception refusalOfSentinels(JedisConnectionException error) {
        for (HostAndPort sentinel : addresses) {
            try (Connection connection = new Connection(sentinel, sentinelConfig)) {
                connection.ping();
            } catch (JedisException e) {
                error.addSuppressed(e);
            }
        }
        return Refusal.bySentinel(error);
    }

    private synchronized boolean keep(UnifiedJedis made) {
        client = made;
        return !closed;
    }

    @Override
    public Map<String, Object> options() {
        InForce inForce = new InForce("redis.clients.jedis", SET_BY_TARGET).add("", clientConfig).add("", poolConfig);
        return topology == Topology.SENTINEL ? inForce.add(SENTINEL_CONFIG + ".", sentinelConfig).options() : inForce.options();
    }

    @Override
    public void perform(Call call) {
        threads.execute(() -> {
            List<Command> commands = call.request().commands();
            List<CommandArguments> arguments = commands.stream().map(Jedis::arguments).toList();
            if (arguments.size() == 1) {
                single(call, arguments.get(0));
            } else {
                pipeline(call, arguments);
            }
        });
    }

    private void single(Call call, CommandArguments arguments) {
        call.sent();
        try {
            Object reply = client.executeCommand(arguments);
            call.done();
            call.succeeded(Arrays.asList(reply), UnaryOperator.identity());
        } catch (RuntimeException e) {
            call.done();
            call.failed(failure(e, topology != Topology.CLUSTER));
        }
    }

    private void pipeline(Call call, List<CommandArguments> commands) {
        List<Response<Object>> responses = new ArrayList<>(commands.size());
        call.sent();
        try {
            try (AbstractPipeline pipeline = client.pipelined()) {
                for (CommandArguments command : commands) {
                    responses.add(pipeline.sendCommand(command));
                }
                pipeline.sync();
            }
        } catch (RuntimeException e) {
            call.done();
            call.failed(failure(e, responses.isEmpty()));
            return;
        }
        call.done();
        List<Object> replies = new ArrayList<>(commands.size());
        List<Failure> failures = new ArrayList<>();
        for (Response<Object> response : responses) {
            try {
                replies.add(response.get());
            } catch (JedisDataException e) {
                failures.add(failure(e, false));
            } catch (IllegalStateException e) {
                // ClusterPipeline.sync() only logs that a connection broke: the replies that did not come are not set.
                failures.add(new Failure(Kind.LOST, Failure.textOf(e)));
            }
        }
        if (failures.isEmpty()) {
            call.succeeded(replies, UnaryOperator.identity());
        } else {
            call.failed(Failure.ofPipeline(commands.size(), failures));
        }
    }

    private static CommandArguments arguments(Command command) {
        byte[][] words = command.words();
        int key = command.keyIndex();
        CommandArguments arguments = new CommandArguments(protocolCommand(command));
        for (int i = 1; i < words.length; i++) {
            if (i == key) {
                arguments.key(words[i]);
            } else {
                arguments.add(words[i]);
            }
        }
        return arguments;
    }

    private static ProtocolCommand protocolCommand(Command command) {
        try {
            return Protocol.Command.valueOf(command.name());
        } catch (IllegalArgumentException e) {
            return () -> command.words()[0];
        }
    }

    /** A client that can have sent the request before, to another node or another command of it, does not say that it was not sent. */
    private static Failure failure(RuntimeException error, boolean firstAttempt) {
        return new Failure(kind(error, firstAttempt), Failure.textOf(error));
    }

    private static Kind kind(RuntimeException error, boolean firstAttempt) {
        boolean withoutConnection = hasNoConnection(error);
        if (withoutConnection && firstAttempt) {
            return Kind.REFUSED;
        }
        if (error instanceof JedisDataException) {
            return withoutConnection ? Kind.OTHER : Kind.REPLY;
        }
        List<Throwable> causes = Stream.<Throwable>iterate(error, cause -> cause != null, Throwable::getCause).limit(10).toList();
        if (causes.stream().anyMatch(SocketTimeoutException.class::isInstance)) {
            return Kind.TIMEOUT;
        }
        if (causes.stream().anyMatch(JedisConnectionException.class::isInstance)) {
            return Kind.LOST;
        }
        return causes.stream().anyMatch(JedisDataException.class::isInstance) ? Kind.REPLY : Kind.OTHER;
    }

    /** The library has no exception of its own for it, but it can only come out of the pool's method that takes or makes a connection. */
    private static boolean hasNoConnection(RuntimeException error) {
        return Arrays.stream(error.getStackTrace())
                .anyMatch(frame -> frame.getClassName().equals(Pool.class.getName()) && frame.getMethodName().equals("getResource"));
    }

    @Override
    public void close() {
        UnifiedJedis made;
        synchronized (this) {
            closed = true;
            made = client;
        }
        if (made != null) {
            made.close();
            awaitSentinelListeners(made);
        }
        threads.shutdown();
    }

    /** A listener that has just been started, or is just connecting, goes on after close() (see SentinelListener.run()): it is told again. */
    private static void awaitSentinelListeners(UnifiedJedis made) {
        for (int i = 0; i < 20 && isListening(); i++) {
            LockSupport.parkNanos(Duration.ofMillis(50).toNanos());
            made.close();
        }
    }

    private static boolean isListening() {
        return Thread.getAllStackTraces().keySet().stream().anyMatch(thread -> thread.getName().contains(SENTINEL_LISTENER));
    }
}
