/*
 * The quorum and its fencing tokens, as lib/stores/redis/quorum/ has them: one exclusive lock on three nodes, and clients that ask
 * for it. A client is one owner, which asks once; who tries again is another one. README.md beside this file says what is in
 * it, and what is not.
 *
 * There is no clock. A client counts its lease from when it asks, a node from when it does what was asked: so the hold at a
 * node ends by itself at any moment after the client's time is over, and never before. Who is out of time gives back, which
 * is the same for everybody else.
 *
 * A request and its answer are one step of the node, which comes as late as it likes. A client acts on answers as late as it
 * likes: that is an answer which is under way.
 *
 * -D sets the bounds, the faults that may happen, and the rules that are taken out.
 */

#define NODES 3
#define MAJORITY 2
#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef FENCED /* whether they ask for tokens */
#define FENCED 1
#endif
#ifndef RENEWALS /* of each client */
#define RENEWALS 0
#endif
#ifndef WRITES /* whether clients write to a resource that looks at their tokens, as late as they like */
#define WRITES 0
#endif

/* How many connections are lost, in all; how often nodes forget, one at a time; how many clients stop. */
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef FORGETS
#define FORGETS 0
#endif
#ifndef STOPS
#define STOPS 0
#endif
#ifndef FAULTY /* at which nodes that happens: a mask */
#define FAULTY 7
#endif
#ifndef AHEAD /* by how many tokens the clock of node b is */
#define AHEAD 0
#endif
#ifndef PROPOSES /* whether clients propose tokens; each node gives the proposal or does not, whatever the clocks are */
#define PROPOSES 0
#endif
#define LOW 2 /* two proposals: what the nodes know is below, between or above them */
#define HIGH 5
#define FAR 20 /* 2: and one that is too far ahead of all clocks, which no node gives */

/* A client. */
#define NEW 0
#define REQUESTING 1
#define COMMITTING 2 /* a majority has granted; the largest token is made known */
#define HOLDING 3 /* its section runs, and it is in time */
#define ENDING 4 /* it gives back what it has, or may have */
#define OVER 5
#define STOPPED 6
byte state[CLIENTS];
byte token[CLIENTS];
byte renewed[CLIENTS]; /* how often */
bit renewing[CLIENTS];
byte lapsed[CLIENTS]; /* how many of its leases, the first one and those by renewals, are over */

/* What is between a client and a node: a request, until it is answered, or what was answered. */
#define NONE 0
#define ACQUIRE 1
#define GRANTED 2
#define TAKEN 3
#define FAILED 4 /* it may have been done, or be done yet */
#define COMMIT 5
#define KNOWS 6
#define KNOWS_NOT 7
#define IDLE 8 /* the client holds, and has asked for nothing */
#define RENEW 9
#define HELD 10
#define LOST 11
#define AGAIN 12 /* the acquire by which a renewal puts the hold back */
#define RELEASE 13 /* repeated until it is answered */
#define DONE 14
byte at[CLIENTS * NODES];
byte given[CLIENTS * NODES]; /* the token of a grant, until the largest is known */
/* An acquire that was sent on a connection which is lost, and that the node may still read: ACQUIRE or AGAIN. */
byte stray[CLIENTS * NODES];

/* A node. */
#define FOREVER 255
byte hold[NODES]; /* 0, which is nobody, or client + 1 */
byte leased[NODES]; /* by which of the client's leases it has it: 0, or the renewal's number */
/* The last token that was given, as far as the node knows. Clocks stand still, so the next one is one larger, unless the
   node takes a larger proposal: that is the worst of all cases. A node whose clock is ahead begins so far ahead. */
byte last[NODES];
#ifdef PROPOSAL_COUNTED
byte intended[CLIENTS];
#endif
#if FENCED && PROPOSES
byte proposed[CLIENTS]; /* until all nodes have read it */
hidden byte least; /* the proposal that the node takes now; 0: none */
#ifdef PROPOSAL_REPLACES
#define NEXT(n) (least > 0 -> least : last[n] + 1)
#else
#define NEXT(n) larger(last[n] + 1, least)
#endif
#ifdef PROPOSED_FAR
#define isNear(token) true
#else
#define isNear(token) ((token) < FAR)
#endif
#elif FENCED
#define NEXT(n) last[n] + 1
#else
#define NEXT(n) 1
#endif
byte out; /* the node that has forgotten and does not count yet, + 1 */
#if FORGETS
byte toRenew[CLIENTS]; /* how many leases were asked for before it forgot */
#endif
#ifdef OTHER_CONNECTION_COUNTS
bit old[CLIENTS * NODES]; /* the request was sent before that */
#endif

byte breaks, forgets, stops;

/* Only for what is asserted. */
byte newest; /* the token of who became a holder last */
#if WRITES
byte holders;
byte rank[CLIENTS]; /* the how-manieth holder it was */
byte written; /* the largest token that the resource has seen */
byte writer; /* the turn of who wrote last */
#endif

hidden byte i, j, k, most, what;

#define may(mask, n) (((mask) >> (n)) & 1)
#define link(c, n) ((c) * NODES + (n))
#define on(c, n) at[link(c, n)]
#define isActive(c) (state[c] == REQUESTING || state[c] == COMMITTING || state[c] == HOLDING)
#define larger(a, b) ((a) > (b) -> (a) : (b))
#define isAt(c, n, w) (on(c, n) == (w) -> 1 : 0)
#define said(c, w) (isAt(c, 0, w) + isAt(c, 1, w) + isAt(c, 2, w))
#define letter(n) (97 + (n))

/* ---- what a client gives back ---- */

/* A client that is through with a node has nothing there. */
#define assertNobodyForgotten(c, n) assert(hold[n] != c + 1 || on(c, n) != DONE)

inline becomeOver(c) {
  if
  :: state[c] == ENDING && said(c, DONE) == NODES ->
    state[c] = OVER
  :: else
  fi
}

/* What nothing depends on any more is the same in all states. */
inline forgetToken(c) {
  if
  :: !WRITES && state[c] == ENDING && said(c, COMMIT) == 0 -> token[c] = 0
  :: else
  fi
}

/* Each node is asked for it behind what is under way there. Where nothing can be there, that is done at once.
   `dropped`: commits that are under way come too late, when the hold has ended there. */
inline releaseHold(c, dropped) {
  for (k : 0 .. NODES - 1) {
    given[link(c, k)] = 0;
    if
#ifdef SILENT_NOT_RELEASED
    :: on(c, k) == FAILED -> on(c, k) = DONE
#endif
#ifdef LATE_GRANT_KEPT
    :: on(c, k) == ACQUIRE -> on(c, k) = DONE; stray[link(c, k)] = ACQUIRE
#else
    :: on(c, k) == ACQUIRE
#endif
    :: on(c, k) == AGAIN || (on(c, k) == COMMIT && !dropped)
    :: else -> on(c, k) = (hold[k] == c + 1 || stray[link(c, k)] != 0 -> RELEASE : DONE)
    fi;
    if
    :: hold[k] == c + 1 -> leased[k] = 0
    :: else
    fi
  }
  state[c] = ENDING;
  renewing[c] = 0; renewed[c] = 0; lapsed[c] = 0;
  forgetToken(c);
  becomeOver(c);
  for (k : 0 .. NODES - 1) {
    assertNobodyForgotten(c, k)
  }
}

/* ---- the nodes: each request is one step ---- */

/* An answer for which the client does not wait: while it holds, nothing, and while it ends, `then`. */
inline unawaited(c, n, then) {
  if
  :: state[c] == ENDING -> on(c, n) = then
  :: state[c] == STOPPED -> on(c, n) = NONE
  :: else -> on(c, n) = IDLE
  fi
}

inline replyToCommit(c, n, says) {
  if
  :: state[c] == COMMITTING -> on(c, n) = says
  :: else -> unawaited(c, n, RELEASE); forgetToken(c)
  fi
}

#ifdef OTHER_CONNECTION_COUNTS
#define isOut(c, n) (out == n + 1 && !old[link(c, n)])
#else
#define isOut(c, n) (out == n + 1)
#endif

/* A node that does not count yet grants all the same; the client takes it for a failure. */
inline acquire(c, n) {
  if
  :: hold[n] == 0 ->
    hold[n] = c + 1; leased[n] = 0;
    last[n] = NEXT(n);
    if
    :: state[c] != REQUESTING -> unawaited(c, n, RELEASE)
    :: state[c] == REQUESTING && isOut(c, n) -> on(c, n) = FAILED
    :: else -> on(c, n) = GRANTED; given[link(c, n)] = (FENCED -> last[n] : 0)
    fi;
#if FENCED
    printf("node %c: grants %d, with token %d\n", letter(n), c + 1, last[n])
#else
    printf("node %c: grants %d\n", letter(n), c + 1)
#endif
  :: else ->
    printf("node %c: is taken for %d, by %d\n", letter(n), c + 1, hold[n]);
    if
    :: state[c] != REQUESTING -> unawaited(c, n, DONE); becomeOver(c)
    :: state[c] == REQUESTING && isOut(c, n) -> on(c, n) = FAILED
    :: else ->
      on(c, n) = TAKEN;
      if
      :: said(c, TAKEN) == MAJORITY -> releaseHold(c, false); printf("client %d: is refused, and gives back\n", c + 1)
      :: else
      fi
    fi
  fi
}

#ifdef COMMITS_ANYWHERE
#define mayCommit(c, n) true
#else
#define mayCommit(c, n) (hold[n] == c + 1)
#endif

inline commit(c, n) {
  if
  :: mayCommit(c, n) && !isOut(c, n) ->
    last[n] = larger(last[n], token[c]);
    printf("node %c: knows of token %d of %d\n", letter(n), token[c], c + 1);
    replyToCommit(c, n, KNOWS)
  :: else ->
    replyToCommit(c, n, KNOWS_NOT);
    printf("node %c: refuses token %d of %d\n", letter(n), token[c], c + 1)
  fi
}

inline renew(c, n) {
  if
  :: isOut(c, n) ->
    on(c, n) = IDLE;
    printf("node %c: does not count for the renewal of %d\n", letter(n), c + 1)
  :: !isOut(c, n) && hold[n] == c + 1 ->
    leased[n] = renewed[c] + renewing[c];
    on(c, n) = (renewing[c] -> HELD : IDLE);
    printf("node %c: renews the hold of %d\n", letter(n), c + 1)
  :: else ->
    on(c, n) = (renewing[c] -> LOST : AGAIN);
    printf("node %c: has no hold of %d to renew\n", letter(n), c + 1)
  fi
}

#ifdef REPAIR_WITHOUT_LEASE
#define LEASE_OF_REPAIR(c) FOREVER
#else
#define LEASE_OF_REPAIR(c) renewed[c]
#endif

inline again(c, n) {
  if
  :: hold[n] == 0 || hold[n] == c + 1 ->
    hold[n] = c + 1; leased[n] = LEASE_OF_REPAIR(c);
    unawaited(c, n, RELEASE);
    if
    :: FENCED && on(c, n) == IDLE && !isOut(c, n) -> on(c, n) = COMMIT
    :: else
    fi;
    printf("node %c: has the hold of %d again\n", letter(n), c + 1)
  :: else ->
    unawaited(c, n, RELEASE);
    printf("node %c: is taken for %d, by %d\n", letter(n), c + 1, hold[n])
  fi
}

/* A connection in doubt is ended first: what was sent on it is read no more. */
#if defined(UNCERTAIN_IGNORED)
#define isEnded(sent) false
#elif defined(UNCERTAIN_REPAIR_IGNORED)
#define isEnded(sent) ((sent) == ACQUIRE)
#else
#define isEnded(sent) true
#endif

inline release(c, n) {
  if
  :: isEnded(stray[link(c, n)]) -> stray[link(c, n)] = 0
  :: else
  fi;
  if
  :: hold[n] == c + 1 -> hold[n] = 0; leased[n] = 0
  :: else
  fi;
  on(c, n) = DONE;
  printf("node %c: the hold of %d has ended\n", letter(n), c + 1);
  becomeOver(c)
}

/* The client learns that its request has failed, and not whether it was done. A release is repeated. */
inline fail(c, n) {
  if
  :: on(c, n) == ACQUIRE && state[c] == REQUESTING -> on(c, n) = FAILED
  :: on(c, n) == COMMIT -> replyToCommit(c, n, KNOWS_NOT)
  :: (on(c, n) == ACQUIRE && state[c] != REQUESTING) || on(c, n) == RENEW || on(c, n) == AGAIN -> unawaited(c, n, RELEASE)
  :: else
  fi
}

#define isRequest(w) ((w) == ACQUIRE || (w) == COMMIT || (w) == RENEW || (w) == AGAIN || (w) == RELEASE)

/* Clients are all alike, and so are nodes that nothing sets apart: which of them is the first makes no difference. */
#define isNextClient(c) (c == 0 || (state[before(c)] != NEW && said(before(c), ACQUIRE) < NODES))
#define before(c) ((c + CLIENTS - 1) % CLIENTS)
#define isBehind(n) (last[n] > 0 || saidOf(n, ACQUIRE) == 0) /* it has granted, or has nothing to do */
#if CLIENTS == 2
#define saidOf(n, w) (isAt(0, n, w) + isAt(1, n, w))
#else
#define saidOf(n, w) (isAt(0, n, w) + isAt(1, n, w) + isAt(2, n, w))
#endif
#if !AHEAD && FAULTY == 7
#define isNextNode(n) (n == 0 || isBehind((n + 2) % NODES))
#elif !AHEAD && FAULTY == 4
#define isNextNode(n) (n != 1 || isBehind(0))
#elif AHEAD && (FAULTY == 7 || FAULTY == 2)
#define isNextNode(n) (n != 2 || isBehind(0))
#else
#define isNextNode(n) true
#endif

#if PROPOSES
#define takeProposal(c, p) least = p
inline forgetProposal(c) {
  least = 0;
  if
  :: said(c, ACQUIRE) == 0 -> proposed[c] = 0
  :: else
  fi
}
#else
#define takeProposal(c, p) skip
#define forgetProposal(c) skip
#endif

proctype Link(byte c; byte n) {
end:
  do
#if PROPOSES
  :: d_step {
      on(c, n) == ACQUIRE && isNextClient(c) && isNextNode(n) && hold[n] == 0 && isNear(proposed[c]) ->
      takeProposal(c, proposed[c]);
      acquire(c, n);
      forgetProposal(c);
      assertNobodyForgotten(c, n)
    }
#endif
  :: d_step {
      isRequest(on(c, n)) && (on(c, n) != ACQUIRE || (isNextClient(c) && isNextNode(n))) ->
      what = on(c, n);
      takeProposal(c, 0);
      if
      :: what == ACQUIRE -> acquire(c, n)
      :: what == COMMIT -> commit(c, n)
      :: what == RENEW -> renew(c, n)
      :: what == AGAIN -> again(c, n)
      :: what == RELEASE -> release(c, n)
      fi;
      forgetProposal(c);
      assertNobodyForgotten(c, n)
    }
#if BREAKS
  :: d_step {
      breaks < BREAKS && may(FAULTY, n) && isRequest(on(c, n)) && on(c, n) != RELEASE ->
      breaks++;
      printf("fault: %d loses its connection to node %c\n", c + 1, letter(n));
      if
      :: on(c, n) == ACQUIRE || on(c, n) == AGAIN -> stray[link(c, n)] = on(c, n)
      :: else
      fi;
      fail(c, n)
    }
  :: d_step {
      /* An acquire whose answer is lost is one that is read late, and at once. */
      breaks < BREAKS && may(FAULTY, n) && (on(c, n) == COMMIT || on(c, n) == RENEW) ->
      breaks++;
      printf("fault: %d loses its connection to node %c, and with it an answer\n", c + 1, letter(n));
      what = on(c, n);
      if
      :: what == COMMIT -> commit(c, n)
      :: else -> renew(c, n)
      fi;
      on(c, n) = what;
      fail(c, n)
    }
#endif
#if BREAKS || defined(LATE_GRANT_KEPT)
  :: d_step {
      stray[link(c, n)] != 0 ->
      takeProposal(c, 0);
      if
      :: hold[n] == 0 && stray[link(c, n)] == ACQUIRE -> hold[n] = c + 1; leased[n] = 0; last[n] = NEXT(n)
      :: hold[n] == 0 && stray[link(c, n)] == AGAIN -> hold[n] = c + 1; leased[n] = LEASE_OF_REPAIR(c)
      :: else
      fi;
      stray[link(c, n)] = 0;
      printf("node %c: reads late that %d has asked; the hold is that of %d\n", letter(n), c + 1, hold[n]);
      assertNobodyForgotten(c, n)
    }
#endif
  od
}

#if PROPOSES == 2
#define passed(token) ((token) < FAR -> (token) : 0)
#else
#define passed(token) (token)
#endif
#define isGone(c, lease) ((lease) != FOREVER && (state[c] == STOPPED || lapsed[c] > (lease)))
#if FORGETS
#define isThrough(c) (!isActive(c) || lapsed[c] >= toRenew[c])
#if CLIENTS == 2
#define leasesAreOver (isThrough(0) && isThrough(1))
#else
#define leasesAreOver (isThrough(0) && isThrough(1) && isThrough(2))
#endif
#endif

proctype Node(byte n) {
end:
  do
  :: d_step {
      hold[n] != 0 && isGone(hold[n] - 1, leased[n]) ->
      printf("node %c: the hold of %d ends by its lease\n", letter(n), hold[n]);
      hold[n] = 0; leased[n] = 0
    }
#if FORGETS
  :: d_step {
      forgets < FORGETS && may(FAULTY, n) && out == 0 ->
      forgets++;
      hold[n] = 0; leased[n] = 0;
#ifdef CLOCK_BELIEVED
      last[n] = 0;
#else
      /* When it counts again, its clock is past all that was given before. */
      last[n] = larger(passed(last[0]), larger(passed(last[1]), passed(last[2])));
#endif
#ifndef COUNTS_AT_ONCE
      out = n + 1;
#endif
      for (j : 0 .. CLIENTS - 1) {
        stray[link(j, n)] = 0;
#ifdef OTHER_CONNECTION_COUNTS
        old[link(j, n)] = (on(j, n) == ACQUIRE);
#else
        fail(j, n);
#endif
        toRenew[j] = (isActive(j) && out != 0 -> renewed[j] + renewing[j] + 1 : 0)
      }
      printf("fault: node %c has restarted, and has forgotten all\n", letter(n))
    }
  :: d_step {
      out == n + 1 && leasesAreOver ->
      out = 0;
      for (j : 0 .. CLIENTS - 1) {
        toRenew[j] = 0
      }
      printf("node %c: counts again\n", letter(n))
    }
#endif
  od
}

/* ---- the clients ---- */

inline sendRequest(c) {
  state[c] = REQUESTING;
  for (k : 0 .. NODES - 1) {
    on(c, k) = ACQUIRE
  }
  printf("client %d: asks all nodes\n", c + 1)
}

inline assertOneBeliever(c) {
  for (j : 0 .. CLIENTS - 1) {
    assert(j == c || state[j] != HOLDING || state[c] != HOLDING)
  }
}

inline begin(c) {
  state[c] = HOLDING;
  for (k : 0 .. NODES - 1) {
    if
    :: on(c, k) != ACQUIRE && on(c, k) != COMMIT -> on(c, k) = IDLE
    :: else
    fi
  }
  assertOneBeliever(c);
#if FENCED
  /* Tokens grow. */
  assert(token[c] > newest);
  newest = token[c];
  printf("client %d: holds, with token %d\n", c + 1, token[c]);
#else
  printf("client %d: holds\n", c + 1);
#endif
#if WRITES
  holders++;
  rank[c] = holders
#endif
}

#ifdef MAJORITY_OF_REPLIES
#define enoughGrant(c) (said(c, GRANTED) > said(c, TAKEN))
#define enoughKnow(c) (said(c, KNOWS) >= MAJORITY || said(c, COMMIT) + said(c, KNOWS_NOT) == 0)
#else
#define enoughGrant(c) (said(c, GRANTED) >= MAJORITY)
#define enoughKnow(c) (said(c, KNOWS) >= MAJORITY)
#endif
#ifdef RENEWED_BY_ONE
#define enoughRenew(c) (said(c, HELD) >= 1)
#else
#define enoughRenew(c) (said(c, HELD) >= MAJORITY)
#endif
#ifdef NEVER_COMMITTED
#define knowsAlready(c, n) true
#elif defined(PROPOSAL_COUNTED)
#define knowsAlready(c, n) (most == intended[c] || given[link(c, n)] == most)
#else
#define knowsAlready(c, n) (given[link(c, n)] == most) /* who has given it knows it */
#endif

/* A majority has granted. The largest token is made known where it was granted. */
inline count(c) {
  most = 0;
  for (k : 0 .. NODES - 1) {
    if
#ifdef TOKEN_OF_ONE
    :: on(c, k) == GRANTED && most > 0
#endif
    :: on(c, k) == GRANTED -> most = larger(most, given[link(c, k)])
    :: on(c, k) == TAKEN || on(c, k) == FAILED -> on(c, k) = IDLE
    :: else
    fi
  }
  token[c] = (FENCED -> most : 0);
  state[c] = COMMITTING;
  for (k : 0 .. NODES - 1) {
    if
    :: on(c, k) == GRANTED -> on(c, k) = (knowsAlready(c, k) -> KNOWS : COMMIT)
#ifdef COMMITS_ANYWHERE
    :: on(c, k) == IDLE -> on(c, k) = COMMIT
#endif
    :: else
    fi;
    given[link(c, k)] = 0
  }
#if FENCED
  printf("client %d: is granted by a majority, the largest token is %d\n", c + 1, most)
#else
  begin(c)
#endif
}

#ifdef COUNTED_FROM_REPLY
#define mayLapse(c) (lapsed[c] <= renewed[c]) /* the client does not know it */
#else
#define mayLapse(c) (lapsed[c] < renewed[c])
#endif
#ifdef TOKEN_NOT_CHECKED
#define isAccepted(c) (token[c] != written)
#else
#define isAccepted(c) (token[c] > written)
#endif

proctype Client(byte c) {
end:
  do
#if FORGETS
  :: d_step { state[c] == NEW && isNextClient(c) -> sendRequest(c) }
#endif
  :: d_step { state[c] == REQUESTING && enoughGrant(c) -> count(c) }
  :: d_step { state[c] == COMMITTING && enoughKnow(c) -> begin(c) }
#if RENEWALS
  :: d_step {
      state[c] == HOLDING && !renewing[c] && renewed[c] < RENEWALS ->
      renewing[c] = 1;
      for (k : 0 .. NODES - 1) {
        if
        :: on(c, k) == IDLE -> on(c, k) = RENEW
        :: else
        fi
      }
      printf("client %d: renews\n", c + 1)
    }
  :: d_step {
      state[c] == HOLDING && renewing[c] && enoughRenew(c) ->
      renewing[c] = 0;
      renewed[c]++;
      for (k : 0 .. NODES - 1) {
        if
        :: on(c, k) == HELD -> on(c, k) = IDLE
        :: on(c, k) == LOST -> on(c, k) = AGAIN
        :: else
        fi
      }
      printf("client %d: holds for another lease\n", c + 1)
    }
#endif
#if RENEWALS || defined(COUNTED_FROM_REPLY)
  :: d_step {
      isActive(c) && mayLapse(c) ->
      lapsed[c]++;
      printf("client %d: a lease of it is over\n", c + 1)
    }
#endif
  /* The section has ended, or nobody waits for it any more, or its time is over. */
  :: d_step {
      isActive(c) && (state[c] != REQUESTING || said(c, GRANTED) > 0 || said(c, ACQUIRE) == 0) ->
      what = state[c];
      releaseHold(c, false);
      if
      :: what == HOLDING -> printf("client %d: releases\n", c + 1)
      :: else -> printf("client %d: gives up, and gives back\n", c + 1)
      fi
    }
  :: d_step {
      isActive(c) && said(c, COMMIT) > 0 ->
      releaseHold(c, true);
      printf("client %d: its time is over\n", c + 1)
    }
#if WRITES
  :: d_step {
      rank[c] > 0 && isAccepted(c) ->
      printf("client %d: writes, with token %d\n", c + 1, token[c]);
      /* Nothing is written after what a later holder has written. */
      assert(rank[c] > writer);
      written = token[c]; writer = rank[c]
    }
#endif
#if STOPS
  :: d_step {
      stops < STOPS && isActive(c) ->
      stops++;
      state[c] = STOPPED;
      renewing[c] = 0;
      for (k : 0 .. NODES - 1) {
        given[link(c, k)] = 0;
        if
        :: on(c, k) == ACQUIRE || on(c, k) == COMMIT || on(c, k) == AGAIN
        :: else -> on(c, k) = NONE
        fi
      }
      printf("fault: client %d stops for good\n", c + 1)
    }
#endif
  od
}

/* ---- the end: nothing can happen any more, and somebody else would ask ---- */

#define isFree(n) (hold[n] == 0 && out != n + 1)
#define hasEnded(c) (state[c] == OVER || state[c] == STOPPED)
#define wouldGrow(n, m) (larger(last[n], last[m]) >= newest)

active proctype Next() {
end:
  atomic {
    timeout ->
    printf("another client would ask\n");
    for (j : 0 .. CLIENTS - 1) {
      assert(hasEnded(j))
    }
    assert(isFree(0) && isFree(1) && isFree(2));
#if FENCED
    assert(wouldGrow(0, 1) && wouldGrow(0, 2) && wouldGrow(1, 2))
#endif
  }
}

init {
  atomic {
    last[1] = AHEAD;
#if PROPOSES
    for (j : 0 .. CLIENTS - 1) {
      if
      :: proposed[j] = LOW
      :: proposed[j] = HIGH
#if PROPOSES == 2
      :: proposed[j] = FAR
#endif
      fi
#ifdef PROPOSAL_COUNTED
      ;
      intended[j] = proposed[j]
#endif
    }
#endif
    for (i : 0 .. NODES - 1) {
      run Node(i)
    }
    for (j : 0 .. CLIENTS - 1) {
#if !FORGETS
      sendRequest(j); /* what is under way for long is as good as asked later */
#endif
      run Client(j);
      for (i : 0 .. NODES - 1) {
        run Link(j, i)
      }
    }
  }
}
