/*
 * The protocol of turns, as lib/stores/redis/kinds/exclusive/queue-scripts.ts and lib/core/acquire/ have it: one lock, one
 * server, N processes, each with one caller at a time that wants the lock again and again. README.md beside this file
 * says what is in it, and what is not.
 *
 * Time is in ticks. Nothing is counted from the beginning: all that is kept is how much is left, or how old it is. So
 * runs have no end, and the states do. What is under way to or from a healthy process arrives within the tick, in any
 * order; a healthy process does what is due within the tick.
 *
 * -D sets the bounds, the faults that may happen (as masks of processes, or 1), and the rules that are taken out.
 */

#define N 3
#ifndef PROCESSES
#define PROCESSES N /* that want the lock: 2 or 3 */
#endif
#ifndef LEASE
#define LEASE 5 /* of a hold that is asked for: by acquire and confirm */
#endif
#ifndef PROVISIONAL_LEASE
#define PROVISIONAL_LEASE 4 /* of a grant by message */
#endif
#ifndef ALIVE
#define ALIVE 2 /* how long a place lives without being kept; it is kept in each tick */
#endif
#ifndef OWNERS
#define OWNERS 4 /* names of owners for each process: one is used again only when there is no trace of it any more */
#endif
#ifndef QUEUE
#define QUEUE 5 /* places */
#endif
#ifndef BLOCKED
#define BLOCKED 2 /* a section that blocks its loop for so long must not lose by it */
#endif

/* Which processes may: stop, with the clock running on; have a bad network; be deaf; give up; block their loop. */
#ifndef STOPS
#define STOPS 0
#endif
#ifndef BAD_NETWORK
#define BAD_NETWORK 0
#endif
#ifndef LATE_GRANTS /* whose messages come as late as they like, or not at all; its command connection is fine */
#define LATE_GRANTS 0
#endif
#ifndef HEALS /* whether a bad network may heal, and be bad again */
#define HEALS 0
#endif
#ifndef BREAKS /* whether a bad network also loses connections */
#define BREAKS 1
#endif
#ifndef NOT_SUBSCRIBED
#define NOT_SUBSCRIBED 0
#endif
#ifndef GIVES_UP
#define GIVES_UP 0
#endif
#ifndef BLOCKS
#define BLOCKS 0
#endif
/* Whether the server may: restart with old data; refuse to arm a grant; release without giving. Whether locks are forced. */
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef REFUSES
#define REFUSES 0
#endif
#ifndef PLAIN
#define PLAIN 0
#endif
#ifndef FORCED
#define FORCED 0
#endif
/* Processes whose requests are read and answered as soon as they are sent: fewer orders, and fewer states. */
#ifndef PROMPT
#define PROMPT 0
#endif
/* The process that has to be served in the end. */
#ifndef WATCHED
#define WATCHED 2
#endif

#define may(mask, p) (((mask) >> (p)) & 1)

mtype = { ACQUIRE, KEEP, CONFIRM, RELEASE, granted, queued, held, gone, taken, released };

/* What is under way: requests and answers on the command connection, grants on the other one. */
#ifndef REQUESTS
#define REQUESTS 2
#endif
#ifndef REPLIES
#define REPLIES 3
#endif
#ifndef GRANTS
#define GRANTS 2
#endif
chan request[N] = [REQUESTS] of { mtype, byte };
chan replies[N] = [REPLIES] of { mtype, byte };
chan grant[N] = [GRANTS] of { byte, bit }; /* owner; whether it is of this run of the server */
/* A request of a connection that its process has given up. The server may still read it. */
mtype strayWhat[N];
byte strayOwner[N];

/* The server. An owner is 0, which is nobody, or process * OWNERS + number + 1. */
byte hold;
byte holdLeft;
byte entries;
byte entryOwner[QUEUE];
byte entryAlive[QUEUE]; /* ticks that it still lives */
bit entryNotSubscribed[QUEUE];
byte queueLeft; /* time to live of the line */
bit resting; /* until the tick, a free hold is left to those who stand in no line */
bit subscribed[N]; /* the process's subscription stands */

/* The data with which it starts again. */
#if RESTARTS
byte oldHold;
byte oldHoldLeft;
byte oldEntries;
byte oldOwner[QUEUE];
byte oldAlive[QUEUE];
bit oldNotSubscribed[QUEUE];
byte oldQueueLeft;
#endif

/* A process. */
#define IDLE 0
#define REQUESTING 1 /* its acquire is under way */
#define QUEUED 2 /* it stands in line, as far as it knows */
#define CONFIRMING 3 /* it was granted the hold, and asks whether it has it */
#define HOLDING 4 /* its section runs */
#define AGAIN 5 /* it has to ask again, as another owner */
byte state[N];
byte number[N]; /* of its owner */
byte certain[N]; /* holding: for how long yet; queued: for how long a grant would be, if there was one */
byte age[N]; /* ticks since its question was sent */
bit requested[N]; /* its keep is under way */
bit did[N]; /* it has kept its place, or ended a section, in this tick */
bit thisRun[N]; /* its last "queued" came from this run of the server */
byte toRelease[N]; /* numbers of owners whose release is not answered yet */
byte releaseSent[N]; /* those of them whose release is under way */
bit stopped[N];
byte blocked[N]; /* ticks for which its section blocks the loop */
bit bad[N]; /* its network delays, and loses connections */

byte fault; /* of this tick: 1, or 2 when the watched process may lose by it */

/* Only for what is asserted: the place was granted or not kept alive, so it may be gone; what the process knows is from
   before a restart or a forced unlock, so that it may believe in what is gone. */
byte abandoned; /* ticks for which nobody in the line has lived */
bit mayBeGone[N];
bit excused[N];
bit excusedRequest[N];

hidden byte i, j, k, o, who, given, had, to;
hidden mtype what, reply;
hidden byte wasQueued, isNotSubscribed, isFresh;

#define owner(p) ((p) * OWNERS + number[p] + 1)
#define processOf(o) (((o) - 1) / OWNERS)
#define numberOf(o) (((o) - 1) % OWNERS)
#define awake(p) (!stopped[p] && blocked[p] == 0)
#define believes(p) (state[p] == HOLDING && (certain[p] > 0 || blocked[p] > 0))
#define waits(p) (state[p] != IDLE && state[p] != HOLDING)
#define isPrompt(p) (may(PROMPT, p) && awake(p) && (len(request[p]) > 0 || len(replies[p]) > 0 || (len(grant[p]) > 0 && !may(LATE_GRANTS, p))))
#define isQuiet (!isPrompt(0) && !isPrompt(1) && !isPrompt(2))
#define unsent(p) (toRelease[p] & ~releaseSent[p])

/* ---- the server's scripts: each is one step ---- */

inline takeOff(at) {
  k = at;
  do
  :: k + 1 < entries ->
    entryOwner[k] = entryOwner[k + 1]; entryAlive[k] = entryAlive[k + 1]; entryNotSubscribed[k] = entryNotSubscribed[k + 1]; k++
  :: else -> break
  od;
  entries--;
  entryOwner[entries] = 0; entryAlive[entries] = 0; entryNotSubscribed[entries] = 0;
  if
  :: entries == 0 -> queueLeft = 0
  :: else
  fi
}

#ifdef QUEUE_WITHOUT_END
#define QUEUE_LIVES 255
#else
#define QUEUE_LIVES ALIVE
#endif

inline enqueue(p, me) {
  assert(entries < QUEUE);
  entryOwner[entries] = me; entryAlive[entries] = ALIVE; entryNotSubscribed[entries] = !subscribed[p];
  entries++;
  queueLeft = QUEUE_LIVES
}

#ifdef DEAD_AGAIN
#define isDead(at) false
#else
#define isDead(at) (entryAlive[at] == 0)
#endif

inline tidy() {
  i = 0;
  do
  :: i >= entries -> break
  :: else ->
    if
    :: isDead(i) -> takeOff(i)
    :: else -> i++
    fi
  od
}

inline publish(to, about) {
  if
  :: len(grant[to]) < GRANTS -> grant[to]!about, 1
  :: len(grant[to]) == GRANTS /* the server ends the connection of a process that does not read */
  fi
}

/* No place that is alive, and whose process would have heard it, is passed over. */
inline assertInOrder(at) {
  for (j : 0 .. QUEUE - 1) {
    assert(j >= at || j >= entries || entryAlive[j] == 0 || (!entryNotSubscribed[j] && !subscribed[processOf(entryOwner[j])]))
  }
}

/* Gives the hold to the first place that can have it: `given` is its owner, or 0. */
inline give(me, refuses) {
  given = 0;
#ifdef LATER_FIRST
  i = (entries > 1 -> 1 : 0);
#else
  i = 0;
#endif
  do
  :: i >= entries || resting -> break
  :: else ->
    o = entryOwner[i];
    to = processOf(o);
    if
    :: o == me || entryNotSubscribed[i] || subscribed[to] ->
      assertInOrder(i);
      if
      :: refuses ->
#ifdef PUBLISH_FIRST
        publish(to, o)
#else
        skip
#endif
      :: else ->
        hold = o; holdLeft = PROVISIONAL_LEASE;
        mayBeGone[to] = 1;
        isNotSubscribed = entryNotSubscribed[i];
#ifdef DEAD_AGAIN
        if
        :: entryAlive[i] > 0 -> takeOff(i)
        :: else
        fi;
#else
        takeOff(i);
#endif
        given = o;
        if
        :: o != me && !isNotSubscribed -> publish(to, o)
        :: else
        fi
      fi;
      break
#ifdef NOT_SUBSCRIBED_REMOVED
    :: else -> takeOff(i)
#else
    :: else -> i++
#endif
    fi
  od
}

#ifdef UNCERTAIN_IGNORED
#define endsConnection false
#else
#define endsConnection true
#endif
#ifdef OVERTAKES
#define mayTake true
#else
#define mayTake (entries == 0)
#endif

inline serve(p, me, refuses, plain) {
  reply = gone;
  had = 0;
  do
  :: had < entries && entryOwner[had] != me -> had++
  :: else -> break
  od;
  wasQueued = had < entries; /* at place `had` */
  if
  :: what == ACQUIRE || what == CONFIRM ->
    if
    :: hold == me -> holdLeft = LEASE; reply = granted
    :: hold != me && hold != 0 && what == CONFIRM -> reply = taken
    :: else ->
      tidy();
      if
      :: hold == 0 && mayTake ->
        assertInOrder(entries);
        hold = me; holdLeft = LEASE; reply = granted; mayBeGone[p] = 1
      :: else ->
        reply = taken;
        if
        :: what == ACQUIRE -> enqueue(p, me); reply = queued
        :: else
        fi;
        if
        :: hold == 0 ->
          give(me, refuses);
          if
          :: given == me -> holdLeft = LEASE; reply = granted
          :: else
          fi
        :: else
        fi
      fi
    fi
  :: what == KEEP ->
    if
    :: wasQueued ->
      entryAlive[had] = ALIVE; entryNotSubscribed[had] = !subscribed[p]; queueLeft = QUEUE_LIVES;
      reply = queued;
      if
      :: hold == 0 ->
        tidy();
        give(me, refuses);
        if
        :: given == me -> reply = held
        :: else
        fi
      :: else
      fi
    :: !wasQueued && hold == me -> reply = held
    :: else ->
      /* A place that is kept alive goes only by its grant. */
      assert(me != owner(p) || state[p] != QUEUED || mayBeGone[p]);
#ifdef KEEP_INSERTS
      enqueue(p, me); reply = queued
#else
      reply = gone
#endif
    fi
  :: what == RELEASE ->
    reply = released;
    if
    :: endsConnection && strayOwner[p] == me -> strayOwner[p] = 0; strayWhat[p] = 0 /* the connection in doubt is ended first */
    :: else
    fi;
    if
    :: wasQueued -> takeOff(had)
    :: else
    fi;
    if
    :: hold == me -> hold = 0; holdLeft = 0; wasQueued = 1
    :: else
    fi;
    if
    :: wasQueued && hold == 0 && !plain -> tidy(); give(0, refuses)
    :: wasQueued && hold == 0 && plain -> resting = 1
    :: else
    fi
  fi
}


inline assertOneBeliever(p) {
  for (j : 0 .. N - 1) {
    assert(j == p || !believes(j) || !believes(p) || excused[j] || excused[p])
  }
}

/* The server reads what process p sends. */
proctype Scripts(byte p) {
  do
  :: d_step {
      (isPrompt(p) || isQuiet) && len(request[p]) > 0 && len(replies[p]) < REPLIES ->
      request[p]?what, who;
      serve(p, who, 0, 0);
      replies[p]!reply, who;
      printf("server: %e of %d: %e. The hold is that of %d, %d stand in line\n", what, who, reply, hold, entries)
    }
#if REFUSES
  :: d_step {
      fault == 0 && (isPrompt(p) || isQuiet) && len(request[p]) > 0 && len(replies[p]) < REPLIES ->
      fault = 2;
      request[p]?what, who;
      serve(p, who, 1, 0);
      replies[p]!reply, who;
      printf("server, which refuses to arm a grant: %e of %d: %e. The hold is that of %d, %d stand in line\n",
        what, who, reply, hold, entries)
    }
#endif
#if PLAIN
  :: d_step {
      fault == 0 && (isPrompt(p) || isQuiet) && len(request[p]) > 0 && len(replies[p]) < REPLIES ->
      fault = 1;
      request[p]?what, who;
      serve(p, who, 0, 1);
      replies[p]!reply, who;
      printf("server, which gives nothing: %e of %d: %e. The hold is that of %d, %d stand in line\n",
        what, who, reply, hold, entries)
    }
#endif
#if BAD_NETWORK
  :: d_step {
      isQuiet && strayOwner[p] != 0 ->
      what = strayWhat[p]; who = strayOwner[p];
      strayWhat[p] = 0; strayOwner[p] = 0;
      serve(p, who, 0, 0);
      printf("server: %e of %d, late: %e, which nobody hears. The hold is that of %d, %d stand in line\n",
        what, who, reply, hold, entries)
    }
#endif
  od
}

/* ---- the processes ---- */

/* Whether nothing is left of an owner's name, so that it is as good as a new one. */
#define inUse(p, n) ((toRelease[p] & (1 << (n))) != 0 || hold == p * OWNERS + (n) + 1 || \
  strayOwner[p] == p * OWNERS + (n) + 1 || isEnqueued(p * OWNERS + (n) + 1) || \
  grant[p]??[eval(p * OWNERS + (n) + 1), 0] || grant[p]??[eval(p * OWNERS + (n) + 1), 1] || isOld(p * OWNERS + (n) + 1))
#define isEnqueued(o) ((o) == entryOwner[0] || (o) == entryOwner[1] || (o) == entryOwner[2] || \
  (o) == entryOwner[3] || (o) == entryOwner[4])
#if RESTARTS
#define isOld(o) ((o) == oldHold || (o) == oldOwner[0] || (o) == oldOwner[1] || (o) == oldOwner[2] || \
  (o) == oldOwner[3] || (o) == oldOwner[4])
#else
#define isOld(o) 0
#endif

/* A bound of the model: else it waits until its releases are answered. */
#define mayRequest(p) (unsent(p) == 0 && (toRelease[p] & (toRelease[p] - 1)) == 0)
#ifdef OWNER_TWICE
#define hasName(p) 1
#elif OWNERS == 3
#define hasName(p) (!inUse(p, 0) || !inUse(p, 1) || !inUse(p, 2))
#else
#define hasName(p) (!inUse(p, 0) || !inUse(p, 1) || !inUse(p, 2) || !inUse(p, 3))
#endif

inline sendRequest(p, kind) {
  request[p]!kind, owner(p);
  age[p] = 0;
  requested[p] = 0;
  excusedRequest[p] = 0
}

inline newOwner(p) {
  i = 0;
#ifndef OWNER_TWICE
  do
  :: i < OWNERS && inUse(p, i) -> i++
  :: else -> break
  od;
#endif
  number[p] = i;
  mayBeGone[p] = 0
}

/* Its place or its hold goes back to the store. */
inline release(p) {
  toRelease[p] = toRelease[p] | (1 << number[p]);
  if
  :: len(request[p]) < REQUESTS -> request[p]!RELEASE, owner(p); releaseSent[p] = releaseSent[p] | (1 << number[p])
  :: else
  fi
}

inline become(p, next) {
  state[p] = next;
  requested[p] = 0;
  if
  :: next == IDLE || next == AGAIN -> number[p] = 0; mayBeGone[p] = 0; thisRun[p] = 0
  :: else
  fi;
  if
  :: next != HOLDING -> certain[p] = 0; excused[p] = 0
  :: else
  fi;
  if
  :: next != REQUESTING && next != CONFIRMING -> age[p] = 0; excusedRequest[p] = 0
  :: else
  fi
}

inline begin(p) {
  become(p, HOLDING);
  assertOneBeliever(p)
}

/* It was told the truth when it asked; `left` is how long that stays true. */
inline certainFor(p, leased) {
  certain[p] = (leased > age[p] -> leased - age[p] : 0);
  excused[p] = excusedRequest[p]
}

inline receive(p) {
  if
  :: what == released ->
    toRelease[p] = toRelease[p] & ~(1 << numberOf(who)); releaseSent[p] = releaseSent[p] & ~(1 << numberOf(who))
  :: who == owner(p) && what == granted && (state[p] == REQUESTING || state[p] == CONFIRMING) ->
    certainFor(p, LEASE);
    if
    :: certain[p] > 0 -> begin(p)
    :: else -> release(p); become(p, AGAIN)
    fi
  :: who == owner(p) && what == queued && (state[p] == REQUESTING || (state[p] == QUEUED && requested[p])) ->
    certainFor(p, PROVISIONAL_LEASE);
    thisRun[p] = 1;
    state[p] = QUEUED; requested[p] = 0; age[p] = 0
#ifdef NEVER_REPAIRED
  :: what == held || what == gone -> requested[p] = 0; age[p] = 0
#endif
  :: who == owner(p) && what == held && state[p] == QUEUED ->
    become(p, CONFIRMING);
    sendRequest(p, CONFIRM)
  :: who == owner(p) && ((what == gone && state[p] == QUEUED) || (what == taken && state[p] == CONFIRMING)) ->
    become(p, AGAIN)
  :: else /* it wants that no more */
  fi
}

#ifdef OTHER_RUN_BELIEVED
#define isOfAnotherRun(p) false
#else
#define isOfAnotherRun(p) (!isFresh || !thisRun[p])
#endif
#ifdef THIN_GRANT_BELIEVED
#define ENOUGH 1
#else
#define ENOUGH ((PROVISIONAL_LEASE + 1) / 2)
#endif

inline receiveGrant(p, blocks) {
  if
  :: who == owner(p) && state[p] == QUEUED ->
    if
    :: isOfAnotherRun(p) /* its keeper will ask */
    :: else ->
#ifdef COUNTED_FROM_ARRIVAL
      certain[p] = PROVISIONAL_LEASE;
#endif
      if
      :: certain[p] >= ENOUGH ->
        blocked[p] = (blocks -> BLOCKED : 0);
        begin(p)
      :: else ->
        become(p, CONFIRMING);
        sendRequest(p, CONFIRM)
      fi
    fi
  :: who == owner(p) && (state[p] == CONFIRMING || state[p] == HOLDING)
  :: else ->
    /* It does not wait any more: it gives back what it was given. */
    toRelease[p] = toRelease[p] | (1 << numberOf(who))
  fi
}

/* A grant that comes before the answer that its owner stands in line counts when that has come. */
#define expectsReply(p) (state[p] == REQUESTING && (grant[p]?[eval(owner(p)), 0] || grant[p]?[eval(owner(p)), 1]))

proctype Process(byte p) {
  do
  /* A caller comes, or the one that waits goes on as another owner. What was to be released was sent before. */
  :: d_step {
      isQuiet && awake(p) && (state[p] == IDLE || state[p] == AGAIN) && mayRequest(p) && hasName(p) &&
      len(request[p]) < REQUESTS ->
      newOwner(p);
      sendRequest(p, ACQUIRE);
      state[p] = REQUESTING;
      printf("process %d: acquire as %d\n", p, owner(p))
    }
  :: d_step {
      (isPrompt(p) || isQuiet) && awake(p) && len(replies[p]) > 0 && len(request[p]) < REQUESTS ->
      replies[p]?what, who;
      receive(p);
      printf("process %d: hears that %d is %e\n", p, who, what)
    }
  :: d_step {
      (isPrompt(p) || isQuiet) && awake(p) && len(grant[p]) > 0 && len(request[p]) < REQUESTS && !expectsReply(p) ->
      grant[p]?who, isFresh;
      receiveGrant(p, 0);
      printf("process %d: hears the grant to %d, and is certain for %d\n", p, who, certain[p])
    }
#if BLOCKS
  :: d_step {
      (isPrompt(p) || isQuiet) && may(BLOCKS, p) && awake(p) && len(grant[p]) > 0 && len(request[p]) < REQUESTS && !expectsReply(p) ->
      grant[p]?who, isFresh;
      receiveGrant(p, 1);
      printf("process %d: hears the grant to %d, is certain for %d and blocks its loop\n", p, who, certain[p])
    }
#endif
  :: d_step {
      isQuiet && awake(p) && state[p] == QUEUED && !requested[p] && !did[p] && len(request[p]) < REQUESTS ->
      request[p]!KEEP, owner(p);
      requested[p] = 1; age[p] = 0; did[p] = 1; excusedRequest[p] = 0;
      printf("process %d: keep %d\n", p, owner(p))
    }
  /* The section ends: at will, but not twice in a tick; or because the lease is over. */
  :: d_step {
      isQuiet && awake(p) && state[p] == HOLDING && (!did[p] || certain[p] == 0) ->
      printf("process %d: release %d\n", p, owner(p));
      release(p);
      become(p, IDLE);
      did[p] = 1
    }
#if GIVES_UP
#ifdef STAYS_QUEUED
#define leaves false
#else
#define leaves true
#endif
  :: d_step {
      isQuiet && may(GIVES_UP, p) && awake(p) && waits(p) && !did[p] ->
      printf("process %d: gives up, leave %d\n", p, owner(p));
      if
      :: state[p] != AGAIN && leaves -> release(p)
      :: else
      fi;
      become(p, IDLE);
      did[p] = 1
    }
#endif
  :: d_step {
      isQuiet && awake(p) && unsent(p) != 0 && len(request[p]) < REQUESTS ->
      i = 0;
      do
      :: unsent(p) & (1 << i) -> break
      :: else -> i++
      od;
      request[p]!RELEASE, p * OWNERS + i + 1;
      releaseSent[p] = releaseSent[p] | (1 << i);
      printf("process %d: release %d\n", p, p * OWNERS + i + 1)
    }
  od
}

/* ---- faults: one in a tick ---- */

/* The command connection is lost: nothing is known of what was asked on it. `late`: its first request is read all the same. */
inline loseConnection(p, late, fails) {
  if
  :: late -> request[p]?strayWhat[p], strayOwner[p]
  :: !late
  fi;
  do
  :: len(request[p]) > 0 -> request[p]?what, who
  :: else -> break
  od;
  do
  :: len(replies[p]) > 0 -> replies[p]?what, who
  :: else -> break
  od;
  releaseSent[p] = 0;
  if
#ifdef RETRY_CARRIES_NEXT
  :: state[p] == REQUESTING -> sendRequest(p, ACQUIRE)
#endif
  :: state[p] == REQUESTING || state[p] == CONFIRMING || (fails && state[p] == QUEUED) ->
    release(p);
    become(p, AGAIN)
  :: else -> requested[p] = 0; age[p] = 0; excusedRequest[p] = 0
  fi
}

/* A fault of one process. Where the watched one may lose its turn by it each time, it is not promised one meanwhile. */
#define harm(p) fault = (p == WATCHED -> 2 : 1)

proctype Faults(byte p) {
  do
#if STOPS
  :: d_step {
      isQuiet && fault == 0 && may(STOPS, p) ->
      fault = 1;
      stopped[p] = !stopped[p];
      printf("fault: process %d has stopped: %d\n", p, stopped[p])
    }
#endif
#if BAD_NETWORK
#if HEALS
  :: d_step {
      isQuiet && fault == 0 && may(BAD_NETWORK, p) ->
      fault = 1;
      bad[p] = !bad[p];
      printf("fault: process %d has a bad network: %d\n", p, bad[p])
    }
#endif
#if BREAKS
  :: d_step {
      isQuiet && fault == 0 && bad[p] -> harm(p);
      loseConnection(p, 0, 0);
      printf("fault: process %d loses its connection\n", p)
    }
  :: d_step {
      isQuiet && fault == 0 && bad[p] && state[p] == QUEUED -> harm(p);
      loseConnection(p, 0, 1);
      printf("fault: process %d loses its connection, and tells its callers\n", p)
    }
  :: d_step {
      isQuiet && fault == 0 && bad[p] && strayOwner[p] == 0 &&
      (request[p]?[ACQUIRE, eval(owner(p))] || request[p]?[CONFIRM, eval(owner(p))]) -> harm(p);
      loseConnection(p, 1, 0);
      printf("fault: process %d loses its connection, the server still reads %e of %d\n",
        p, strayWhat[p], strayOwner[p])
    }
#endif
#endif
#if BAD_NETWORK || LATE_GRANTS
  :: d_step {
      isQuiet && (bad[p] || may(LATE_GRANTS, p)) && len(grant[p]) > 0 ->
      grant[p]?who, isFresh;
      printf("fault: the grant to %d is lost\n", who)
    }
#endif
#if NOT_SUBSCRIBED
  :: d_step {
      isQuiet && fault == 0 && may(NOT_SUBSCRIBED, p) -> harm(p);
      subscribed[p] = !subscribed[p];
      do
      :: len(grant[p]) > 0 -> grant[p]?who, isFresh
      :: else -> break
      od;
      printf("fault: process %d hears messages: %d\n", p, subscribed[p])
    }
#endif
  :: false
  od
}

inline excuseAll() {
  for (j : 0 .. N - 1) {
    if
    :: state[j] != IDLE && state[j] != AGAIN -> excused[j] = 1; excusedRequest[j] = 1; mayBeGone[j] = 1
    :: else
    fi
  }
}

proctype World() {
  do
#if FORCED
  :: d_step {
      isQuiet && fault == 0 && hold != 0 ->
      fault = (processOf(hold) == WATCHED -> 2 : 1);
      hold = 0; holdLeft = 0;
      for (j : 0 .. N - 1) {
        if
        :: waits(j) || state[j] == HOLDING -> excused[j] = 1; excusedRequest[j] = 1
        :: else
        fi
      }
      tidy();
      give(0, 0);
      printf("somebody: force. The hold is that of %d, %d stand in line\n", hold, entries)
    }
#endif
#if RESTARTS
  :: d_step {
      /* Until now the replica has followed, or the disk. */
      isQuiet && fault == 0 -> fault = 1;
      oldHold = hold; oldHoldLeft = holdLeft; oldEntries = entries; oldQueueLeft = queueLeft;
      for (j : 0 .. QUEUE - 1) {
        oldOwner[j] = entryOwner[j]; oldAlive[j] = entryAlive[j]; oldNotSubscribed[j] = entryNotSubscribed[j]
      }
    }
  :: d_step {
      isQuiet && fault == 0 -> fault = 2;
      hold = oldHold; holdLeft = oldHoldLeft; entries = oldEntries; queueLeft = oldQueueLeft;
      for (j : 0 .. QUEUE - 1) {
        entryOwner[j] = oldOwner[j]; entryAlive[j] = oldAlive[j]; entryNotSubscribed[j] = oldNotSubscribed[j]
      }
      excuseAll();
      for (j : 0 .. N - 1) {
        loseConnection(j, 0, 0);
        thisRun[j] = 0;
        i = len(grant[j]);
        do
        :: i > 0 -> grant[j]?who, isFresh; grant[j]!who, 0; i--
        :: else -> break
        od
      }
      printf("fault: the server starts again. The hold is that of %d, %d stand in line\n", hold, entries)
    }
#endif
  :: false
  od
}

/* ---- time ---- */

/* Nothing is due any more in this tick. A bad network may take its time, and who is stopped has no due. */
#define arrived(p) (bad[p] || len(request[p]) == 0 || len(replies[p]) == REPLIES)
#define isDone(p) (!awake(p) || bad[p] || (len(replies[p]) == 0 && (len(grant[p]) == 0 || may(LATE_GRANTS, p)) && unsent(p) == 0 && \
  state[p] != AGAIN && (state[p] != QUEUED || did[p]) && (state[p] != HOLDING || certain[p] > 0)))
#define calm(p) (arrived(p) && isDone(p))

/* Who gives up leaves: nothing in the store is an owner's that a healthy process does not know of any more. */
#define mayHave(p, o) (processOf(o) != p || bad[p] || !awake(p) || len(request[p]) > 0 || \
  (o == owner(p) && (state[p] == QUEUED || state[p] == HOLDING)))

inline assertNobodyForgotten(p) {
#if RESTARTS
  skip /* old data knows forgotten ones */
#else
  assert(hold == 0 || mayHave(p, hold));
  for (j : 0 .. QUEUE - 1) {
    assert(j >= entries || mayHave(p, entryOwner[j]))
  }
#endif
}

#define down(what) what = (what > 0 -> what - 1 : 0)

proctype Clock() {
  do
  :: d_step {
      calm(0) && calm(1) && calm(2) ->
      for (k : 0 .. N - 1) {
        assertNobodyForgotten(k)
      }
      fault = 0;
      resting = 0;
      down(holdLeft);
      if
      :: holdLeft == 0 -> hold = 0
      :: else
      fi;
      for (j : 0 .. QUEUE - 1) {
        if
        :: entryAlive[j] == 1 -> mayBeGone[processOf(entryOwner[j])] = 1
        :: else
        fi;
        down(entryAlive[j])
      }
      if
      :: queueLeft < 255 -> down(queueLeft)
      :: else
      fi;
      if
      :: queueLeft == 0 ->
        entries = 0;
        for (j : 0 .. QUEUE - 1) {
          entryOwner[j] = 0; entryAlive[j] = 0; entryNotSubscribed[j] = 0
        }
      :: else
      fi;
      j = 0;
      do
      :: j < entries && entryAlive[j] == 0 -> j++
      :: else -> break
      od;
      abandoned = (entries > 0 && j == entries -> abandoned + 1 : 0);
      /* No line stays in which nobody lives. */
      assert(abandoned <= ALIVE);
#if RESTARTS
      down(oldHoldLeft);
      if
      :: oldHoldLeft == 0 -> oldHold = 0
      :: else
      fi;
      for (j : 0 .. QUEUE - 1) {
        down(oldAlive[j])
      }
      down(oldQueueLeft);
      if
      :: oldQueueLeft == 0 ->
        oldEntries = 0;
        for (j : 0 .. QUEUE - 1) {
          oldOwner[j] = 0; oldAlive[j] = 0; oldNotSubscribed[j] = 0
        }
      :: else
      fi;
#endif
      for (j : 0 .. N - 1) {
        did[j] = 0;
        down(certain[j]);
        down(blocked[j]);
        if
        :: (requested[j] || state[j] == REQUESTING || state[j] == CONFIRMING) && age[j] < LEASE -> age[j]++
        :: else
        fi
      }
      printf("tick\n")
    }
  od
}

init {
  d_step {
    for (j : 0 .. N - 1) {
      subscribed[j] = 1;
      bad[j] = may(BAD_NETWORK, j)
    }
  }
  atomic {
    run Scripts(0); run Process(0); run Faults(0);
    run Scripts(1); run Process(1); run Faults(1);
#if PROCESSES > 2
    run Scripts(2); run Process(2); run Faults(2);
#endif
    run World();
    run Clock()
  }
}

#define unwell (stopped[WATCHED] || bad[WATCHED] || fault == 2)

/* Who waits has its turn in the end, if its own faults end. */
ltl served { [] <> (!waits(WATCHED) || unwell) }
