import { Body, Controller, Get, Param, Post } from '@nestjs/common';
import { PlaceOrderDto } from './dto/place-order.dto.js';
import { FlashSaleService, type StockReport, type SaleView } from './flash-sale.service.js';
import type { Order } from './order.entity.js';

@Controller('flash-sale/:sku')
export class FlashSaleController {
  constructor(private readonly flashSale: FlashSaleService) {}

  @Get()
  show(@Param('sku') sku: string): Promise<SaleView> {
    return this.flashSale.show(sku);
  }

  @Get('report')
  report(@Param('sku') sku: string): Promise<StockReport> {
    return this.flashSale.report(sku);
  }

  @Post('orders')
  order(@Param('sku') sku: string, @Body() body: PlaceOrderDto): Promise<Order> {
    return this.flashSale.order(sku, body.userId);
  }
}
