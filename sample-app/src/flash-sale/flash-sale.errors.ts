import { ConflictException, NotFoundException, ServiceUnavailableException } from '@nestjs/common';

/** Code in the body of an error response; clients should check it. */
export type FlashSaleErrorCode = 'SOLD_OUT' | 'ALREADY_ORDERED' | 'UNKNOWN_SKU' | 'TRY_AGAIN';

const body = (code: FlashSaleErrorCode, message: string) => ({ code, message });

export class SoldOutError extends ConflictException {
  constructor(sku: string) {
    super(body('SOLD_OUT', `${sku} is sold out.`));
  }
}

export class AlreadyOrderedError extends ConflictException {
  constructor(sku: string) {
    super(body('ALREADY_ORDERED', `You have ordered ${sku} already; it is one for each customer.`));
  }
}

export class UnknownSkuError extends NotFoundException {
  constructor(sku: string) {
    super(body('UNKNOWN_SKU', `There is no flash sale of ${sku}.`));
  }
}

/** The lock passed to another request while this one was working, and the database rejected its write. */
export class StaleWriteError extends ServiceUnavailableException {
  constructor(sku: string) {
    super(body('TRY_AGAIN', `The order of ${sku} was overtaken. Nothing was lost; please try again.`));
  }
}

/** `optimistic` lost the race for the row too often. */
export class TooContendedError extends ServiceUnavailableException {
  constructor(sku: string) {
    super(body('TRY_AGAIN', `Too many buyers want ${sku} at this moment; please try again.`));
  }
}
