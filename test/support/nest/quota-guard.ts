import { Injectable, type CanActivate } from '@nestjs/common';
import { Locked } from 'nest-redis-lock';

/** A guard that needs the lock `quota:bob`, and does not wait for it. */
@Injectable()
export class QuotaGuard implements CanActivate {
  @Locked('quota:<<0>>', { waitMs: 0 })
  async spend(user: string): Promise<boolean> {
    return user !== '';
  }

  canActivate(): Promise<boolean> {
    return this.spend('bob');
  }
}
