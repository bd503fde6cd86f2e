import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntFunction;

/**
 * A Java process that a test drives. Each line of the input is a JSON object with `id` and `do`. Each command is answered by a
 * line with that `id` and `result` or `error`. A line with `event` answers no command. The process ends with its input.
 *
 * A lock belongs to a thread, so each command names the thread it runs on. Times are ms since 1970, with fractions.
 */
abstract class Side {
  private static final Gson JSON = new Gson();
  /** Prefix of the names of the threads that run commands. */
  private static final String CALLER = "caller ";

  private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
  private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);

  /** Runs a command on the thread that it names, and returns its result. */
  abstract Object run(JsonObject command) throws Exception;

  /** Whether a thread with this stack waits to be notified that a lock is free. */
  abstract boolean waits(StackTraceElement[] stack);

  /** Sends `greeting` as the reply to command 0, then runs commands until the input ends. */
  final void serve(Object greeting) throws IOException {
    answer(0, "result", greeting);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      begin(JsonParser.parseString(line).getAsJsonObject());
    }
    System.exit(0);
  }

  private void begin(JsonObject command) {
    int id = command.get("id").getAsInt();
    threads
        .computeIfAbsent(
            text(command, "thread", "main"),
            (name) -> Executors.newSingleThreadExecutor((work) -> new Thread(work, CALLER + name)))
        .execute(() -> {
          try {
            answer(id, "result", runAny(command));
          } catch (Exception failure) {
            answer(id, "error", failure.toString());
          }
        });
  }

  private Object runAny(JsonObject command) throws Exception {
    switch (command.get("do").getAsString()) {
      case "cpuMs":
        return cpuMs();
      case "sleeps":
        return sleeps(text(command, "of", null));
      default:
        return run(command);
    }
  }

  private void answer(int id, String what, Object value) {
    JsonObject reply = new JsonObject();
    reply.addProperty("id", id);
    reply.add(what, JSON.toJsonTree(value));
    send(reply);
  }

  /** Sends an event: `event` is its type. */
  final void emit(String type, JsonObject event) {
    event.addProperty("event", type);
    event.addProperty("at", now());
    send(event);
  }

  private synchronized void send(JsonObject line) {
    out.println(line);
    out.flush();
  }

  static String text(JsonObject command, String name, String otherwise) {
    return command.has(name) ? command.get(name).getAsString() : otherwise;
  }

  static long number(JsonObject command, String name, long otherwise) {
    return command.has(name) ? command.get(name).getAsLong() : otherwise;
  }

  private static double cpuMs() {
    return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e6;
  }

  /** Whether the thread of this name sleeps until it is notified that a lock is free. */
  private boolean sleeps(String thread) {
    for (Map.Entry<Thread, StackTraceElement[]> one : Thread.getAllStackTraces().entrySet()) {
      Thread.State state = one.getKey().getState();
      if (!one.getKey().getName().equals(CALLER + thread)) continue;
      if (state != Thread.State.TIMED_WAITING && state != Thread.State.WAITING) continue;
      if (waits(one.getValue())) return true;
    }
    return false;
  }

  /** The work of one of several threads. */
  interface Caller {
    JsonElement call() throws Exception;
  }

  /** Runs the caller in this many threads, and returns the result of each. */
  static JsonArray inThreads(int count, Caller caller) throws Exception {
    return inThreads(count, (thread) -> caller);
  }

  /** Runs a caller of its own in each thread: `callerOf` gets the number of the thread. */
  static JsonArray inThreads(int count, IntFunction<Caller> callerOf) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(count);
    try {
      List<Future<JsonElement>> running = new ArrayList<>();
      for (int i = 0; i < count; i++) running.add(pool.submit(callerOf.apply(i)::call));
      JsonArray each = new JsonArray();
      for (Future<JsonElement> one : running) each.add(one.get());
      return each;
    } finally {
      pool.shutdown();
    }
  }

  static double now() {
    Instant now = Instant.now();
    return now.getEpochSecond() * 1e3 + now.getNano() / 1e6;
  }
}
