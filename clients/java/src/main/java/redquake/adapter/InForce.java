package redquake.adapter;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** The options in force: what the getters of a library's configuration return, after its defaults. */
public final class InForce {

    private static final Pattern SECRET = Pattern.compile("(?i).*(password|credential|username|auth|ssl|tls|keystore|truststore).*");
    private static final int DEEPEST = 3;
    private static final int MOST = 200;

    private final String packages;
    private final Set<String> leftOut;
    private final Map<String, Object> options = new TreeMap<>();

    /** Configurations within others are followed if their package starts with that. Some names are left out: what the target sets is no option. */
    public InForce(String packages, Set<String> leftOut) {
        this.packages = packages;
        this.leftOut = leftOut;
    }

    public InForce add(String prefix, Object configuration) {
        add(prefix, configuration, 1);
        return this;
    }

    public InForce put(String name, Object value) {
        options.put(name, value);
        return this;
    }

    /** At most as many as the protocol allows. */
    public Map<String, Object> options() {
        return options.entrySet().stream().limit(MOST).collect(TreeMap::new, (map, entry) -> map.put(entry.getKey(), entry.getValue()), Map::putAll);
    }

    private void add(String prefix, Object configuration, int depth) {
        Method[] methods = configuration.getClass().getMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName));
        for (Method method : methods) {
            String name = name(method);
            if (name == null || leftOut.contains(name)) {
                continue;
            }
            Object value = get(method, configuration);
            if (value == null || value instanceof Boolean || value instanceof String) {
                options.put(prefix + name, value);
            } else if (value instanceof Integer || value instanceof Long) {
                options.put(prefix + name, value);
            } else if (value instanceof Duration duration) {
                options.put(prefix + name, text(duration));
            } else if (value instanceof Enum<?> constant) {
                options.put(prefix + name, constant.name());
            } else if (value instanceof Collection<?> items && items.stream().allMatch(Enum.class::isInstance)) {
                options.put(prefix + name, items.stream().map(Object::toString).sorted().collect(Collectors.joining(" ")));
            } else if (depth < DEEPEST && value.getClass().getName().startsWith(packages)) {
                add(prefix + name + ".", value, depth + 1);
            }
        }
    }

    /** The name of the option that a getter returns, or null if it is no getter of one. */
    private static String name(Method method) {
        boolean getter = method.getParameterCount() == 0 && !Modifier.isStatic(method.getModifiers()) && method.getDeclaringClass() != Object.class
                && !method.isAnnotationPresent(Deprecated.class) && !SECRET.matcher(method.getName()).matches();
        int prefix = method.getName().startsWith("get") ? 3 : method.getName().startsWith("is") ? 2 : 0;
        if (!getter || prefix == 0 || method.getName().length() == prefix) {
            return null;
        }
        return method.getName().substring(prefix, prefix + 1).toLowerCase() + method.getName().substring(prefix + 1);
    }

    private static Object get(Method method, Object configuration) {
        try {
            method.setAccessible(true);
            return method.invoke(configuration);
        } catch (InvocationTargetException | IllegalAccessException e) {
            return null;
        }
    }

    /** As Options takes it. */
    public static String text(Duration duration) {
        return duration.toMillis() % 1000 == 0 ? duration.toSeconds() + "s" : duration.toMillis() + "ms";
    }
}
