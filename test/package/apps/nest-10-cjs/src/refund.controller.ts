import { Controller } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { Locked } from 'nest-redis-lock';

@Controller()
export class RefundController {
  @MessagePattern('refund')
  @Locked('order:<<userId>>', { waitMs: 0 })
  async refund(@Payload('userId') userId: string): Promise<string> {
    return `refunded ${userId}`;
  }
}
