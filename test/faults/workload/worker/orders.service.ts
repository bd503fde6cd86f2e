import 'reflect-metadata';
import { Injectable, type Type } from '@nestjs/common';
import type { Lease } from '../../../../lib/core/lease.js';

/** `nest-redis-lock`, from wherever it was loaded: the source, a build, or a copy that was broken on purpose. */
export type Library = typeof import('nest-redis-lock');

/** What a decorated method runs inside its lock. */
export type Section = (lease: Lease) => Promise<void>;

/** The service of the worker's Nest app. */
export interface Orders {
  watched(round: string, id: string, section: Section): Promise<void>;
  fixed(round: string, id: string, section: Section): Promise<void>;
  /** Returns false when it was skipped. */
  skipped(round: string, id: string, section: Section): Promise<boolean>;
  two(round: string, from: string, to: string, section: Section): Promise<void>;
}

/** What the decorated methods are fixed to. */
export const DECORATED = { waitMs: 700, leaseMs: 400 } as const;

/** A provider with decorated methods, for the library given. */
export const ordersOf = ({ Locked, currentLease }: Library): Type<Orders> => {
  @Injectable()
  class OrdersService implements Orders {
    @Locked('<<round>>:<<id>>', { waitMs: DECORATED.waitMs })
    async watched(round: string, id: string, section: Section): Promise<void> {
      await section(currentLease());
    }

    @Locked('<<round>>:<<id>>', { waitMs: DECORATED.waitMs, leaseMs: DECORATED.leaseMs })
    async fixed(round: string, id: string, section: Section): Promise<void> {
      await section(currentLease());
    }

    @Locked('<<0>>:<<1>>', { onBusy: () => false })
    async skipped(round: string, id: string, section: Section): Promise<boolean> {
      await section(currentLease());
      return true;
    }

    @Locked(['<<round>>:<<from>>', '<<round>>:<<to>>'], { waitMs: DECORATED.waitMs })
    async two(round: string, from: string, to: string, section: Section): Promise<void> {
      await section(currentLease());
    }
  }
  return OrdersService;
};
