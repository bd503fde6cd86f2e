import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { LockService } from 'nest-redis-lock';
import { disposes } from './shared/disposal.js';
import { exercise, redisUrl } from './shared/exercise.js';
import { ShopModule } from './shared/shop.js';

const app = await NestFactory.create(ShopModule.on(redisUrl()), { logger: ['error', 'warn'] });
const disposal = await disposes(app.get(LockService));
console.log(JSON.stringify({ ...(await exercise(app)), disposal }));
