import 'reflect-metadata';
import { ValidationPipe } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockService } from 'nest-redis-lock';
import { AppModule } from './app.module.js';
import { askBeforeWriting } from './demo/ask-before-writing.js';
import { runPart } from './demo/part-process.js';
import { reportAcquisitions } from './demo/report-acquisitions.js';
import { reportClicks } from './demo/report-clicks.js';
import { FencedCheckout } from './flash-sale/fenced-checkout.js';
import { FencedStock } from './flash-sale/fenced-stock.js';
import { FlashSaleService } from './flash-sale/flash-sale.service.js';
import { usesLock } from './flash-sale/strategies/strategy-names.js';
import { readSettings } from './settings.js';

await runPart(async () => {
  const settings = readSettings(process.env);
  const app = await NestFactory.create(AppModule.forRoot(settings), {
    abortOnError: false,
    logger: ['warn', 'error', 'fatal'],
  });
  app.useGlobalPipes(new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true }));
  app.enableShutdownHooks();
  const [shop, checkout, stock] = [app.get(FlashSaleService), app.get(FencedCheckout), app.get(FencedStock)];
  if (settings.underFaults) askBeforeWriting(stock);
  reportClicks({ shop, checkout, stock }, usesLock(settings.strategy));
  const locks = app.get(LockService);
  // An instance without its locks could not sell: it does not start.
  await locks.ping();
  await app.listen(settings.port, '127.0.0.1');
  await reportAcquisitions(locks);
  return app.getUrl();
});
