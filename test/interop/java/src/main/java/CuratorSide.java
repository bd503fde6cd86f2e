import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.KeeperException;

/** A process of a Java service that uses Curator, driven by a test. Names of locks are paths in ZooKeeper. */
public final class CuratorSide extends Side {
  private static final String RECIPES = InterProcessMutex.class.getPackageName();
  private static final int RETRY_AFTER_MS = 50;
  private static final int MAX_RETRIES = 8;
  /** Time for the first connection on a machine that has much else to do. */
  private static final int BOOT_MS = 20_000;
  private static final int NOT_CONNECTED = 3;
  private static final int DIGITS_OF_SEQUENCE = 10;

  /** What a command acquires: a lock, or a lease of a semaphore. */
  private interface Section {
    void enter() throws Exception;

    boolean enter(long waitMs) throws Exception;

    void leave() throws Exception;
  }

  private final CuratorFramework client;
  /** Threads share the objects of Curator, as in a service. The key is the kind and the name. */
  private final Map<String, InterProcessLock> locks = new ConcurrentHashMap<>();
  private final Map<String, InterProcessReadWriteLock> readWriteLocks = new ConcurrentHashMap<>();
  private final Map<String, InterProcessSemaphoreV2> semaphores = new ConcurrentHashMap<>();
  /** Leases of semaphores by semaphore and thread. */
  private final Map<String, Deque<Lease>> leases = new ConcurrentHashMap<>();

  /** Threads that stay for the next load: a start takes longer than a short load. */
  private final ExecutorService callers = Executors.newCachedThreadPool();

  private CuratorSide(CuratorFramework client) {
    this.client = client;
    client
        .getConnectionStateListenable()
        .addListener((same, state) -> {
          JsonObject event = new JsonObject();
          event.addProperty("state", state.name());
          emit("connection", event);
        });
  }

  /** Arguments: connect string, session time-out and connection time-out in ms. */
  public static void main(String[] args) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.builder()
            .connectString(args[0])
            .sessionTimeoutMs(Integer.parseInt(args[1]))
            .connectionTimeoutMs(Integer.parseInt(args[2]))
            .retryPolicy(new ExponentialBackoffRetry(RETRY_AFTER_MS, MAX_RETRIES))
            // The addresses in the configuration of the servers would lead around a proxy of a test.
            .ensembleTracker(false)
            .build();
    CuratorSide side = new CuratorSide(client);
    client.start();
    if (!client.blockUntilConnected(BOOT_MS, TimeUnit.MILLISECONDS)) {
      System.err.println("no connection to ZooKeeper within " + BOOT_MS + " ms");
      System.exit(NOT_CONNECTED);
    }
    // The client is never closed: nodes of a process that ends stay until its session expires.
    side.serve(side.session());
  }

  private String session() throws Exception {
    return Long.toHexString(client.getZookeeperClient().getZooKeeper().getSessionId());
  }

  /** A recipe waits by itself. A thread that waits for the reply to a request has ZooKeeper's client above the recipe. */
  @Override
  boolean waits(StackTraceElement[] stack) {
    for (StackTraceElement frame : stack) {
      if (!frame.getClassName().equals(Object.class.getName())) return frame.getClassName().startsWith(RECIPES);
    }
    return false;
  }

  @Override
  Object run(JsonObject command) throws Exception {
    switch (command.get("do").getAsString()) {
      case "lock":
        return lock(command);
      case "tryLock":
        return sectionOf(command).enter(number(command, "waitMs", 0));
      case "unlock":
        sectionOf(command).leave();
        return now();
      case "isLocked":
        return lockOf(command).isAcquiredInThisProcess();
      case "count":
        return count(command);
      case "read":
        return counterOf(command).read();
      case "compare":
        return compare(command);
      case "contend":
        return contend(command);
      case "free":
        return free(command);
      case "demo":
        return demo(command);
      case "participants":
        return participants(command);
      case "revoke":
        return revoke(command);
      case "node":
        return nodeOf(command);
      case "token":
        String node = nodeOf(command);
        return node == null ? null : client.checkExists().forPath(node).getCzxid();
      case "session":
        return session();
      default:
        throw new IllegalArgumentException("unknown command " + command);
    }
  }

  private Object lock(JsonObject command) throws Exception {
    boolean isRevocable = command.has("revocable") && command.get("revocable").getAsBoolean();
    if (isRevocable) makeRevocable(command);
    Section section = sectionOf(command);
    if (!command.has("waitMs")) section.enter();
    else if (!section.enter(command.get("waitMs").getAsLong())) return false;
    return now();
  }

  /** Each later hold of the lock in this process is revocable, too. */
  private void makeRevocable(JsonObject command) {
    String name = text(command, "name", null);
    String kind = text(command, "kind", "mutex");
    ((InterProcessMutex) lockOf(command)).makeRevocable((mutex) -> {
      JsonObject event = new JsonObject();
      event.addProperty("name", name);
      event.addProperty("kind", kind);
      emit("revoke", event);
    });
  }

  private Collection<String> participants(JsonObject command) throws Exception {
    if (!text(command, "kind", "mutex").equals("semaphore")) {
      return ((InterProcessMutex) lockOf(command)).getParticipantNodes();
    }
    // Curator returns the names of these nodes only, and in no order.
    return semaphoreOf(command).getParticipantNodes().stream()
        .map((node) -> leasePath(command, node))
        .sorted(Comparator.comparing((path) -> path.substring(path.length() - DIGITS_OF_SEQUENCE)))
        .collect(Collectors.toList());
  }

  private static String leasePath(JsonObject command, String node) {
    return text(command, "name", null) + "/leases/" + node;
  }

  /** Asks the first participant to release. Returns its node, or null if there is none. */
  private String revoke(JsonObject command) throws Exception {
    Collection<String> nodes = participants(command);
    if (nodes.isEmpty()) return null;
    String first = nodes.iterator().next();
    Revoker.attemptRevoke(client, first);
    return first;
  }

  /** Returns the node of the hold of this thread; null if it has none. */
  private String nodeOf(JsonObject command) {
    String name = text(command, "name", null);
    switch (text(command, "kind", "mutex")) {
      case "mutex":
        return ((Mutex) lockOf(command)).path();
      case "read":
        return readWriteLockOf(name).readLock().getLockPath();
      case "write":
        return readWriteLockOf(name).writeLock().getLockPath();
      case "semaphore":
        Lease lease = leasesOf(command).peekLast();
        return lease == null ? null : leasePath(command, lease.getNodeName());
      default:
        throw new IllegalArgumentException("Curator does not show the node in " + command);
    }
  }

  private Section sectionOf(JsonObject command) {
    return text(command, "kind", "mutex").equals("semaphore")
        ? sectionOf(semaphoreOf(command), leasesOf(command))
        : sectionOf(lockOf(command));
  }

  private static Section sectionOf(InterProcessLock lock) {
    return new Section() {
      @Override
      public void enter() throws Exception {
        lock.acquire();
      }

      @Override
      public boolean enter(long waitMs) throws Exception {
        return lock.acquire(waitMs, TimeUnit.MILLISECONDS);
      }

      @Override
      public void leave() throws Exception {
        lock.release();
      }
    };
  }

  private static Section sectionOf(InterProcessSemaphoreV2 semaphore, Deque<Lease> held) {
    return new Section() {
      @Override
      public void enter() throws Exception {
        held.add(semaphore.acquire());
      }

      @Override
      public boolean enter(long waitMs) throws Exception {
        Lease lease = semaphore.acquire(waitMs, TimeUnit.MILLISECONDS);
        return lease != null && held.add(lease);
      }

      @Override
      public void leave() {
        semaphore.returnLease(held.removeLast());
      }
    };
  }

  private InterProcessLock lockOf(JsonObject command) {
    String kind = text(command, "kind", "mutex");
    String name = text(command, "name", null);
    switch (kind) {
      case "read":
        return readWriteLockOf(name).readLock();
      case "write":
        return readWriteLockOf(name).writeLock();
      case "mutex":
        return locks.computeIfAbsent(kind + name, (key) -> new Mutex(client, name));
      case "semaphore-mutex":
        return locks.computeIfAbsent(kind + name, (key) -> new InterProcessSemaphoreMutex(client, name));
      case "multi":
        List<String> paths = new ArrayList<>();
        for (JsonElement path : command.getAsJsonArray("paths")) paths.add(path.getAsString());
        return locks.computeIfAbsent(kind + paths, (key) -> new InterProcessMultiLock(client, paths));
      default:
        throw new IllegalArgumentException("no lock in " + command);
    }
  }

  private InterProcessReadWriteLock readWriteLockOf(String name) {
    return readWriteLocks.computeIfAbsent(name, (key) -> new InterProcessReadWriteLock(client, key));
  }

  private InterProcessSemaphoreV2 semaphoreOf(JsonObject command) {
    String name = text(command, "name", null);
    int leases = (int) number(command, "leases", 1);
    return semaphores.computeIfAbsent(leases + name, (key) -> new InterProcessSemaphoreV2(client, name, leases));
  }

  private Deque<Lease> leasesOf(JsonObject command) {
    String holder = text(command, "thread", "main") + " of " + text(command, "name", null);
    return leases.computeIfAbsent(holder, (key) -> new ArrayDeque<>());
  }

  /** Returns a section for a thread that no command names. */
  private Section ownSectionOf(JsonObject command) {
    return text(command, "kind", "mutex").equals("semaphore")
        ? sectionOf(semaphoreOf(command), new ArrayDeque<>())
        : sectionOf(lockOf(command));
  }

  /** Shows the node of a hold. */
  private static final class Mutex extends InterProcessMutex {
    Mutex(CuratorFramework client, String name) {
      super(client, name);
    }

    String path() {
      return getLockPath();
    }
  }

  /** A number that threads read and write in two steps. */
  private interface Counter {
    int read() throws Exception;

    void write(int value) throws Exception;
  }

  /** Returns the counter in the file `file`, or in the data of the node `counter`. A missing one is 0. */
  private Counter counterOf(JsonObject command) throws Exception {
    return command.has("file")
        ? fileCounter(Path.of(text(command, "file", null)))
        : nodeCounter(text(command, "counter", null));
  }

  private static Counter fileCounter(Path file) {
    return new Counter() {
      @Override
      public int read() throws IOException {
        return Files.exists(file) ? Integer.parseInt(Files.readString(file)) : 0;
      }

      @Override
      public void write(int value) throws IOException {
        Files.writeString(file, String.valueOf(value));
      }
    };
  }

  private Counter nodeCounter(String path) throws Exception {
    try {
      client.create().creatingParentsIfNeeded().forPath(path, bytesOf(0));
    } catch (KeeperException.NodeExistsException another) {
      // Another process has created it.
    }
    return new Counter() {
      @Override
      public int read() throws Exception {
        return Integer.parseInt(new String(client.getData().forPath(path), StandardCharsets.UTF_8));
      }

      @Override
      public void write(int value) throws Exception {
        client.setData().forPath(path, bytesOf(value));
      }
    };
  }

  private static byte[] bytesOf(int value) {
    return String.valueOf(value).getBytes(StandardCharsets.UTF_8);
  }

  /** Each thread adds 1 to a counter this often, in steps that only mutual exclusion makes atomic. */
  private JsonArray count(JsonObject command) throws Exception {
    Counter counter = counterOf(command);
    int rounds = command.get("rounds").getAsInt();
    return inThreads(command.get("threads").getAsInt(), () -> {
      Section section = ownSectionOf(command);
      for (int round = 0; round < rounds; round++) {
        section.enter();
        try {
          int before = counter.read();
          Thread.sleep(1);
          counter.write(before + 1);
        } finally {
          section.leave();
        }
      }
      return new JsonPrimitive(rounds);
    });
  }

  /** Each thread reads a counter twice under the lock, this often. Returns how often it changed meanwhile, by thread. */
  private JsonArray compare(JsonObject command) throws Exception {
    Counter counter = counterOf(command);
    int rounds = command.get("rounds").getAsInt();
    return inThreads(command.get("threads").getAsInt(), () -> {
      Section section = ownSectionOf(command);
      int changed = 0;
      for (int round = 0; round < rounds; round++) {
        section.enter();
        try {
          int before = counter.read();
          Thread.sleep(1);
          if (counter.read() != before) changed++;
        } finally {
          section.leave();
        }
      }
      return new JsonPrimitive(changed);
    });
  }

  /**
   * Threads acquire, work and release for a while, or until each has done so `rounds` times. Returns for each thread: how
   * often it held the lock, the longest time without it in ms, and when each of its sections began and ended.
   */
  private JsonArray contend(JsonObject command) throws Exception {
    long workMs = command.get("workMs").getAsLong();
    double endsAt = now() + command.get("forMs").getAsLong();
    long rounds = number(command, "rounds", Long.MAX_VALUE);
    return inThreads(command.get("threads").getAsInt(), () -> {
      Section section = ownSectionOf(command);
      JsonArray times = new JsonArray();
      double lastAt = now();
      double longestMs = 0;
      int served = 0;
      while (served < rounds && now() < endsAt) {
        section.enter();
        double beganAt = now();
        JsonArray time = new JsonArray();
        try {
          longestMs = Math.max(longestMs, Math.min(beganAt, endsAt) - lastAt);
          lastAt = beganAt;
          if (beganAt < endsAt) {
            served++;
            Thread.sleep(workMs);
          }
          time.add(beganAt);
          time.add(now());
        } finally {
          section.leave();
        }
        times.add(time);
      }
      JsonObject had = new JsonObject();
      had.addProperty("served", served);
      had.addProperty("longestMs", Math.max(longestMs, endsAt - lastAt));
      had.add("times", times);
      return had;
    });
  }

  /**
   * Threads acquire and release for a while, each round its own locks below a path. They start together. Returns how often
   * each did, and the time in ms until the last one was done.
   */
  private JsonObject free(JsonObject command) throws Exception {
    int threads = command.get("threads").getAsInt();
    int each = command.get("each").getAsInt();
    String below = text(command, "below", null);
    List<List<InterProcessLock>> own = new ArrayList<>();
    for (int thread = 0; thread < threads; thread++) {
      List<InterProcessLock> its = new ArrayList<>();
      for (int i = 0; i < each; i++) {
        String path = below + "/free-" + thread + "-" + i;
        its.add(locks.computeIfAbsent("mutex" + path, (key) -> new Mutex(client, path)));
      }
      own.add(its);
    }
    double[] startedAt = new double[1];
    CyclicBarrier start = new CyclicBarrier(threads, () -> startedAt[0] = now());
    long forMs = command.get("forMs").getAsLong();
    List<Future<Integer>> running = new ArrayList<>();
    for (List<InterProcessLock> its : own) running.add(callers.submit(() -> {
      start.await();
      double endsAt = startedAt[0] + forMs;
      int served = 0;
      for (; now() < endsAt; served++) {
        InterProcessLock lock = its.get(served % each);
        lock.acquire();
        lock.release();
      }
      return served;
    }));
    JsonArray served = new JsonArray();
    for (Future<Integer> one : running) served.add(one.get());
    JsonObject result = new JsonObject();
    result.add("served", served);
    result.addProperty("elapsedMs", now() - startedAt[0]);
    return result;
  }

  /** Workers each wait for the lock for up to `waitMs`, then work for `workMs`. Returns how many got in, and how many not. */
  private JsonObject demo(JsonObject command) throws Exception {
    long waitMs = command.get("waitMs").getAsLong();
    long workMs = command.get("workMs").getAsLong();
    JsonArray each = inThreads(command.get("workers").getAsInt(), () -> {
      Section section = ownSectionOf(command);
      if (!section.enter(waitMs)) return new JsonPrimitive(false);
      try {
        Thread.sleep(workMs);
      } finally {
        section.leave();
      }
      return new JsonPrimitive(true);
    });
    int entered = 0;
    for (JsonElement one : each) if (one.getAsBoolean()) entered++;
    JsonObject result = new JsonObject();
    result.addProperty("entered", entered);
    result.addProperty("gaveUp", each.size() - entered);
    return result;
  }
}
