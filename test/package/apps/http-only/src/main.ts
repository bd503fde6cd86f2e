import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { exercise, redisUrl } from './shared/exercise.js';
import { ShopModule } from './shared/shop.js';

const app = await NestFactory.create(ShopModule.on(redisUrl()), { logger: ['error', 'warn'] });
console.log(JSON.stringify(await exercise(app)));
