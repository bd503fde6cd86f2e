import { Module, type DynamicModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { LockModule } from 'nest-redis-lock';
import { flashSaleDatabase } from './flash-sale/flash-sale.database.js';
import { FlashSaleModule } from './flash-sale/flash-sale.module.js';
import { lockOptions } from './lock-place.js';
import type { AppSettings } from './settings.js';

@Module({})
export class AppModule {
  static forRoot(settings: AppSettings): DynamicModule {
    // Instances that start together on a busy machine need more than a third of the demo's short watchdog.
    const commandTimeoutMs = Math.min(2_000, settings.watchdogMs - 1);
    return {
      module: AppModule,
      imports: [
        TypeOrmModule.forRoot(flashSaleDatabase(settings.databaseUrl, settings.namespace)),
        LockModule.forRoot({
          ...lockOptions({ ...settings.locks, commandTimeoutMs }),
          keyPrefix: settings.keyPrefix,
          watchdogMs: settings.watchdogMs,
        }),
        FlashSaleModule.forRoot(settings),
      ],
    };
  }
}
