module seckill.example/shop

go 1.19
