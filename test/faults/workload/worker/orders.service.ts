import 'reflect-metadata';
import { Injectable, type Type } from '@nestjs/common';
import type * as library from 'nest-redis-lock';
import type * as mysql from 'nest-redis-lock/mysql';
import type * as postgres from 'nest-redis-lock/postgres';
import type * as redis from 'nest-redis-lock/redis';
import type * as zookeeper from 'nest-redis-lock/zookeeper';
import type { KindStores } from '../../../../lib/core/seam/lock-store.js';
import type { Lease } from '../../../../lib/core/lease/lease.js';

/**
 * `nest-redis-lock` with its stores, loaded from the source, a build, or a copy that was broken on purpose. Of the stores
 * only the family is there that was asked for.
 */
export type Library = typeof library & typeof redis & typeof mysql & typeof postgres & typeof zookeeper;

/** What a decorated method runs inside its lock. */
export type Section = (lease: Lease) => Promise<void>;

/** The service of the worker's Nest app. */
export interface Orders {
  watched(round: string, id: string, section: Section): Promise<void>;
  fixed(round: string, id: string, section: Section): Promise<void>;
  fair(round: string, id: string, section: Section): Promise<void>;
  reads(round: string, id: string, section: Section): Promise<void>;
  writes(round: string, id: string, section: Section): Promise<void>;
  /** Returns false when it was skipped. */
  skipped(round: string, id: string, section: Section): Promise<boolean>;
  two(round: string, from: string, to: string, section: Section): Promise<void>;
}

/** What the decorated methods are fixed to. */
export const DECORATED = { waitMs: 700, leaseMs: 400 } as const;

/** Token of the service. */
export const ORDERS = 'orders';

/** A provider with decorated methods, for the library given. An app does not start with a kind that its store lacks. */
export const ordersOf = ({ Locked, currentLease }: Library, kinds: KindStores): Type<Orders> => {
  const OfKind = (mode: 'fair' | 'read' | 'write') =>
    kinds[mode] ? Locked('<<round>>:<<id>>', { waitMs: DECORATED.waitMs, mode }) : (): void => undefined;

  @Injectable()
  class OrdersService implements Orders {
    @Locked('<<round>>:<<id>>', { waitMs: DECORATED.waitMs })
    async watched(round: string, id: string, section: Section): Promise<void> {
      await section(currentLease(`${round}:${id}`));
    }

    @Locked('<<round>>:<<id>>', { waitMs: DECORATED.waitMs, leaseMs: DECORATED.leaseMs })
    async fixed(round: string, id: string, section: Section): Promise<void> {
      await section(currentLease(`${round}:${id}`));
    }

    @OfKind('fair')
    async fair(round: string, id: string, section: Section): Promise<void> {
      await section(currentLease(`${round}:${id}`));
    }

    @OfKind('read')
    async reads(round: string, id: string, section: Section): Promise<void> {
      await section(currentLease(`${round}:${id}`));
    }

    @OfKind('write')
    async writes(round: string, id: string, section: Section): Promise<void> {
      await section(currentLease(`${round}:${id}`));
    }

    @Locked('<<0>>:<<1>>', { onBusy: () => false, waitMs: 0 })
    async skipped(round: string, id: string, section: Section): Promise<boolean> {
      await section(currentLease(`${round}:${id}`));
      return true;
    }

    @Locked(['<<round>>:<<from>>', '<<round>>:<<to>>'], { waitMs: DECORATED.waitMs })
    async two(round: string, from: string, to: string, section: Section): Promise<void> {
      const lease = currentLease(`${round}:${from}`);
      if (lease === currentLease(`${round}:${to}`)) await section(lease);
    }
  }
  return OrdersService;
};
