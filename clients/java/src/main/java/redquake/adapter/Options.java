package redquake.adapter;

import java.lang.reflect.Array;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Hands options to the builders and setters of a library by the names that the library gives them. What an option takes follows from the types of the
 * methods with its name: NAME, setNAME or withNAME with one parameter, or NAME without any, for which the option is true.
 * <ul>
 * <li>text, number and truth: the same
 * <li>Duration: a number of milliseconds, or a text such as 500ms, 10s or 1m
 * <li>an enum: the name of a constant, in whatever case
 * <li>an array: a list
 * <li>a type with a static method builder(): a map of options of that builder
 * <li>a type with other static methods that make one: a map of the name of such a method to its argument or the list of its arguments
 * </ul>
 */
public final class Options {

    private static final Pattern DURATION = Pattern.compile("([0-9]+)(ms|s|m|h)");

    private final Map<Class<?>, List<Class<?>>> implementations;

    /** Where a library's method takes an interface, these of its types are tried. */
    public Options(Map<Class<?>, List<Class<?>>> implementations) {
        this.implementations = implementations;
    }

    /** Hands each option to the first target that knows it; reserved ones are not for the user to give. */
    public void apply(Map<String, Object> options, String path, Set<String> reserved, Object... targets) throws Refusal {
        for (Map.Entry<String, Object> option : options.entrySet()) {
            String field = path + "." + option.getKey();
            if (reserved.contains(option.getKey())) {
                throw Refusal.invalid(field, option.getKey() + " is set by the target");
            }
            apply(option.getKey(), option.getValue(), field, targets);
        }
    }

    /** A map that is the value of an option. */
    @SuppressWarnings("unchecked")
    public static Map<String, Object> map(Object value, String field) throws Refusal {
        if (value == null) {
            return Map.of();
        }
        if (value instanceof Map<?, ?> map) {
            return (Map<String, Object>) map;
        }
        throw mismatch(field, "a map of options", value);
    }

    private void apply(String name, Object value, String field, Object... targets) throws Refusal {
        for (Object target : targets) {
            List<Method> methods = named(target, name).toList();
            if (!methods.isEmpty()) {
                apply(target, methods, value, field);
                return;
            }
        }
        String types = Arrays.stream(targets).map(target -> readable(target.getClass())).collect(Collectors.joining(", "));
        throw Refusal.invalid(field, "no method of " + types + " is for an option " + name);
    }

    private void apply(Object target, List<Method> methods, Object value, String field) throws Refusal {
        List<Refusal> refusals = new ArrayList<>();
        for (Method method : methods) {
            Object[] arguments;
            try {
                arguments = arguments(method, value, field);
            } catch (Refusal refusal) {
                refusals.add(refusal);
                continue;
            }
            call(method, target, arguments, field);
            return;
        }
        throw closest(refusals, field, methods, value);
    }

    private static Stream<Method> named(Object target, String name) {
        String capital = name.isEmpty() ? "" : name.substring(0, 1).toUpperCase() + name.substring(1);
        List<String> names = List.of(name, "set" + capital, "with" + capital);
        return Arrays.stream(target.getClass().getMethods())
                .filter(method -> names.contains(method.getName()) && !Modifier.isStatic(method.getModifiers()) && method.getParameterCount() <= 1)
                .filter(method -> isSetter(method, target))
                .filter(method -> method.getDeclaringClass() != Object.class && !method.isBridge())
                .sorted(Comparator.comparing(Method::toString));
    }

    /** A method of a builder returns the builder; build() may be declared to return an Object. */
    private static boolean isSetter(Method method, Object target) {
        Class<?> type = method.getReturnType();
        return type == void.class || type != Object.class && type.isInstance(target);
    }

    private Object[] arguments(Method method, Object value, String field) throws Refusal {
        if (method.getParameterCount() == 0) {
            if (!Boolean.TRUE.equals(value)) {
                throw mismatch(field, "true", value);
            }
            return new Object[0];
        }
        return new Object[] {convert(value, method.getParameterTypes()[0], field)};
    }

    /** If a method takes a map but not its content, the blame is on the content; else on the value. */
    private static Refusal closest(List<Refusal> refusals, String field, List<Method> methods, Object value) {
        for (Refusal refusal : refusals) {
            if (!refusal.field().equals(field)) {
                return refusal;
            }
        }
        if (refusals.size() == 1) {
            return refusals.get(0);
        }
        String types = methods.stream()
                .map(method -> method.getParameterCount() == 0 ? "true" : readable(method.getParameterTypes()[0]))
                .distinct().collect(Collectors.joining(" or "));
        return mismatch(field, types, value);
    }

    private Object convert(Object value, Class<?> type, String field) throws Refusal {
        if (value == null && !type.isPrimitive()) {
            return null;
        }
        if (value instanceof Boolean && (type == boolean.class || type == Boolean.class)) {
            return value;
        }
        if (value instanceof String && type == String.class) {
            return value;
        }
        if (value instanceof Number number && (type.isPrimitive() || Number.class.isAssignableFrom(type))) {
            return number(number, type, field);
        }
        if (type == Duration.class) {
            return duration(value, field);
        }
        if (type.isEnum()) {
            return constant(value, type, field);
        }
        if (type.isArray() && value instanceof List<?> items) {
            Object array = Array.newInstance(type.getComponentType(), items.size());
            for (int i = 0; i < items.size(); i++) {
                Array.set(array, i, convert(items.get(i), type.getComponentType(), field));
            }
            return array;
        }
        if (implementations.containsKey(type)) {
            return convertToAny(value, type, field);
        }
        if (value instanceof Map<?, ?>) {
            return build(map(value, field), type, field);
        }
        throw mismatch(field, readable(type), value);
    }

    private static Object number(Number number, Class<?> type, String field) throws Refusal {
        if (type == double.class || type == Double.class) {
            return number.doubleValue();
        }
        if (number instanceof Long whole && (type == long.class || type == Long.class)) {
            return whole;
        }
        if (number instanceof Long whole && (type == int.class || type == Integer.class) && whole == whole.intValue()) {
            return whole.intValue();
        }
        throw mismatch(field, readable(type), number);
    }

    private static Duration duration(Object value, String field) throws Refusal {
        if (value instanceof Long milliseconds) {
            return Duration.ofMillis(milliseconds);
        }
        Matcher matcher = value instanceof String text ? DURATION.matcher(text) : null;
        if (matcher == null || !matcher.matches() || matcher.group(1).length() > 12) {
            throw mismatch(field, "a duration such as 500ms, or a number of milliseconds", value);
        }
        long count = Long.parseLong(matcher.group(1));
        return switch (matcher.group(2)) {
            case "ms" -> Duration.ofMillis(count);
            case "s" -> Duration.ofSeconds(count);
            case "m" -> Duration.ofMinutes(count);
            default -> Duration.ofHours(count);
        };
    }

    private static Object constant(Object value, Class<?> type, String field) throws Refusal {
        for (Object constant : type.getEnumConstants()) {
            if (((Enum<?>) constant).name().equalsIgnoreCase(String.valueOf(value))) {
                return constant;
            }
        }
        throw mismatch(field, "one of " + Arrays.toString(type.getEnumConstants()), value);
    }

    private Object convertToAny(Object value, Class<?> type, String field) throws Refusal {
        for (Class<?> implementation : implementations.get(type)) {
            try {
                return convert(value, implementation, field);
            } catch (Refusal refusal) {
                if (!refusal.field().equals(field)) {
                    throw refusal;
                }
            }
        }
        throw mismatch(field, implementations.get(type).stream().map(Options::readable).collect(Collectors.joining(" or ")), value);
    }

    private Object build(Map<String, Object> options, Class<?> type, String field) throws Refusal {
        for (Method method : type.getMethods()) {
            if (method.getName().equals("builder") && Modifier.isStatic(method.getModifiers()) && method.getParameterCount() == 0) {
                Object builder = call(method, null, new Object[0], field);
                apply(options, field, Set.of(), builder);
                return build(builder, field);
            }
        }
        if (options.size() == 1) {
            Map.Entry<String, Object> entry = options.entrySet().iterator().next();
            for (Method method : type.getMethods()) {
                boolean factory = Modifier.isStatic(method.getModifiers()) && type.isAssignableFrom(method.getReturnType());
                if (factory && method.getName().equals(entry.getKey())) {
                    Object[] arguments = arguments(method, entry.getValue());
                    if (arguments != null) {
                        return call(method, null, arguments, field + "." + entry.getKey());
                    }
                }
            }
        }
        throw mismatch(field, readable(type), options);
    }

    /** The arguments of a static method, or null if it takes others. */
    private Object[] arguments(Method method, Object value) {
        List<?> values = value instanceof List<?> list ? list : value == null ? List.of() : List.of(value);
        if (values.size() != method.getParameterCount()) {
            return null;
        }
        Object[] arguments = new Object[values.size()];
        try {
            for (int i = 0; i < arguments.length; i++) {
                arguments[i] = convert(values.get(i), method.getParameterTypes()[i], "");
            }
        } catch (Refusal refusal) {
            return null;
        }
        return arguments;
    }

    /** What a builder makes, or its words why it does not. */
    public static Object build(Object builder, String field) throws Refusal {
        try {
            return call(builder.getClass().getMethod("build"), builder, new Object[0], field);
        } catch (NoSuchMethodException e) {
            throw Refusal.invalid(field, readable(builder.getClass()) + " cannot be given as an option");
        }
    }

    private static Object call(Method method, Object target, Object[] arguments, String field) throws Refusal {
        try {
            method.setAccessible(true);
            return method.invoke(target, arguments);
        } catch (InvocationTargetException e) {
            throw Refusal.invalid(field, Failure.textOf(e.getCause()));
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Refusal mismatch(String field, String wanted, Object value) {
        return Refusal.invalid(field, "it takes " + wanted + ", not " + value);
    }

    private static String readable(Class<?> type) {
        if (type.isArray()) {
            return "a list of " + readable(type.getComponentType());
        }
        return type.isMemberClass() ? type.getDeclaringClass().getSimpleName() + "." + type.getSimpleName() : type.getSimpleName();
    }
}
